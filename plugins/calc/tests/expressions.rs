//! Expressions with their results or errors.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use calc::{Answer, EvalError, FUNCTIONS, Variable, evaluate};

fn answer(expression: &str) -> Answer {
    evaluate(expression, &[]).unwrap_or_else(|error| panic!("{expression}: {error}"))
}

fn value(expression: &str) -> String {
    answer(expression).value
}

fn error(expression: &str) -> EvalError {
    match evaluate(expression, &[]) {
        Ok(answer) => panic!("{expression} = {}", answer.value),
        Err(error) => error,
    }
}

fn variable(name: &str, value: &str) -> Variable {
    Variable {
        name: name.to_owned(),
        value: value.to_owned(),
    }
}

#[test]
fn decimals_are_exact() {
    for (expression, expected) in [
        ("0.1 + 0.2", "0.3"),
        ("1.10 - 1", "0.1"),
        ("19.99 * 3", "59.97"),
        ("1e-3 + 1E3", "1000.001"),
        ("1_000.5", "1000.5"),
        (".5", "0.5"),
        ("-0.0", "0"),
        ("2^-3", "0.125"),
        ("9007199254740993 * 3", "27021597764222979"),
        ("7 % 3", "1"),
        ("-7 % 3", "2"),
        ("7 % -3", "-2"),
        ("5.5 % 2", "1.5"),
    ] {
        let answer = answer(expression);
        assert_eq!((answer.value.as_str(), answer.exact), (expected, true), "{expression}");
    }
}

#[test]
fn fractions_are_exact_and_shown_rounded() {
    let third = answer("1/3");
    assert_eq!(third.value, format!("0.{}", "3".repeat(30)));
    assert_eq!((third.exact, third.fraction.as_deref()), (false, Some("1/3")));
    assert_eq!(value("1/3 + 1/3 + 1/3"), "1");
    assert_eq!(value("-2/3"), format!("-0.{}7", "6".repeat(29)));
    assert_eq!(value("10^40/3"), format!("3.{}e39", "3".repeat(29)));
    assert_eq!(value("1/(3*10^20)"), format!("3.{}e-21", "3".repeat(29)));
    assert_eq!(value("10^29 - 1/3"), format!("{}.7", "9".repeat(29)));
    assert_eq!(value("10^30 - 1/3"), "1e30");
}

#[test]
fn large_whole_numbers_keep_every_digit() {
    assert_eq!(value("2^128"), "340282366920938463463374607431768211456");
    assert_eq!(value("30!"), "265252859812191058636308480000000");
    assert_eq!(value("choose(100, 50)"), "100891344545564193334812497256");
}

#[test]
fn operators_bind_as_in_mathematics() {
    for (expression, expected) in [
        ("1 + 2 * 3", "7"),
        ("(1 + 2) * 3", "9"),
        ("10 - 2 - 3", "5"),
        ("100 / 10 / 2", "5"),
        ("2^3^2", "512"),
        ("-2^2", "-4"),
        ("(-2)^2", "4"),
        ("2^-1", "0.5"),
        ("-3!", "-6"),
        ("2^3!", "64"),
        ("3!!", "720"),
        ("2 * -3", "-6"),
        ("1 - -1", "2"),
        ("+5", "5"),
        ("2 ** 10", "1024"),
        ("6 × 7 ÷ 2 − 1", "20"),
    ] {
        assert_eq!(value(expression), expected, "{expression}");
    }
}

#[test]
fn functions_are_exact_where_they_can_be() {
    for (expression, expected) in [
        ("sqrt(2.25)", "1.5"),
        ("cbrt(-8/27) * 3", "-2"),
        ("log(1000)", "3"),
        ("log(0.001)", "-3"),
        ("log(8, 2)", "3"),
        ("log2(2^5000)", "5000"),
        ("ln(1)", "0"),
        ("cos(0) + exp(0)", "2"),
        ("round(2.675, 2)", "2.68"),
        ("round(-0.5)", "-1"),
        ("round(1234, -2)", "1200"),
        ("floor(-1.5) + ceil(1.2) + trunc(-1.9)", "-1"),
        ("abs(-3) + sign(-3)", "2"),
        ("min(3, 1, 2) + max(3, 1, 2)", "4"),
        ("mean(1, 2, 4) * 3", "7"),
        ("median(5, 1, 3) + median(1, 2)", "4.5"),
        ("gcd(12, 18) + lcm(4, 6)", "18"),
        ("4^0.5", "2"),
    ] {
        let answer = answer(expression);
        assert_eq!((answer.value.as_str(), answer.exact), (expected, true), "{expression}");
    }
}

#[test]
fn irrational_results_are_marked_as_rounded() {
    for (expression, expected) in [
        ("sqrt(2)", "1.4142135623731"),
        ("pi", "3.14159265358979"),
        ("sin(pi/6)", "0.5"),
        ("e^2", "7.38905609893065"),
        ("2^0.3", "1.23114441334492"),
        ("log(2^5000)", "1505.14997831991"),
    ] {
        let answer = answer(expression);
        assert_eq!(
            (answer.value.as_str(), answer.exact, answer.fraction),
            (expected, false, None),
            "{expression}"
        );
    }
}

#[test]
fn a_syntax_error_has_its_position_and_the_expected_token() {
    let syntax = |expression| match error(expression) {
        EvalError::Syntax {
            position,
            expected,
            found,
        } => (position, expected, found),
        other => panic!("{other:?}"),
    };
    for (expression, position, expected, found) in [
        ("1 +", 4, "a number, a name or `(`", "the end"),
        ("", 1, "a number, a name or `(`", "the end"),
        ("2 * (3 + 4", 11, "an operator or `)`", "the end"),
        ("1 2", 3, "an operator or the end", "a number"),
        ("1,000", 2, "an operator or the end", "`,`"),
        ("2)", 2, "no `)` without a `(`", "`)`"),
        ("max(1 2)", 7, "an operator, `,` or `)`", "a number"),
        ("ä + €", 5, "a number, a name, an operator or a parenthesis", "`€`"),
        ("1.", 3, "a digit after the point", "the end"),
        ("2pi", 2, "an operator or the end", "`pi`"),
        ("1/0 + (", 8, "a number, a name or `(`", "the end"),
    ] {
        assert_eq!(
            syntax(expression),
            (position, expected.to_owned(), found.to_owned()),
            "{expression}"
        );
    }
}

#[test]
fn an_unknown_name_is_reported_with_similar_ones() {
    let EvalError::UnknownName { name, position, near } = error("1 + sqroot(2)") else {
        panic!("known")
    };
    assert_eq!(
        (name.as_str(), position, near.first().map(String::as_str)),
        ("sqroot", 5, Some("sqrt"))
    );
    let variables = [variable("price", "19.99")];
    let Err(EvalError::UnknownName { near, .. }) = evaluate("prise * 2", &variables) else {
        panic!("known")
    };
    assert_eq!(near.first().map(String::as_str), Some("price"));
}

#[test]
fn argument_counts_are_checked() {
    let expected = |expression| match error(expression) {
        EvalError::WrongArgumentCount {
            position: 1,
            expected,
            given,
            ..
        } => (expected, given),
        other => panic!("{other:?}"),
    };
    assert_eq!(expected("sqrt(1, 2)"), ("1 argument".to_owned(), 2));
    assert_eq!(expected("round()"), ("1 to 2 arguments".to_owned(), 0));
    assert_eq!(expected("max()"), ("at least 1".to_owned(), 0));
    assert_eq!(expected("choose(1)"), ("2 arguments".to_owned(), 1));
}

#[test]
fn undefined_results_are_reported_with_their_position() {
    assert_eq!(error("1 + 2 / (3 - 3)"), EvalError::DivisionByZero { position: 7 });
    assert_eq!(error("1 % 0"), EvalError::DivisionByZero { position: 3 });
    assert_eq!(error("0^-1"), EvalError::DivisionByZero { position: 2 });
    for expression in [
        "sqrt(-1)",
        "ln(0)",
        "log(10, 1)",
        "asin(2)",
        "(-8)^(1/3)",
        "(-1)!",
        "1.5!",
        "gcd(1.5, 2)",
    ] {
        assert!(
            matches!(error(expression), EvalError::OutsideDomain { .. }),
            "{expression}"
        );
    }
}

#[test]
fn variables_are_exact_numbers_or_expressions() {
    let variables = [variable("net", "19.99"), variable("rate", "19/100")];
    assert_eq!(evaluate("net * (1 + rate)", &variables).unwrap().value, "23.7881");
    for (name, value) in [
        ("pi", "3"),
        ("sqrt", "3"),
        ("2x", "3"),
        ("", "3"),
        ("x", "1 +"),
        ("x", "y"),
    ] {
        let error = evaluate("1", &[variable(name, value)]).unwrap_err();
        assert!(
            matches!(error, EvalError::InvalidVariable { .. }),
            "{name}={value}: {error:?}"
        );
    }
}

#[test]
fn hostile_expressions_fail_quickly() {
    let deep = "(".repeat(5000);
    let signs = "-".repeat(5000) + "1";
    let powers = "1^".repeat(4000) + "1";
    for expression in [&deep, &signs, &powers] {
        assert_eq!(error(expression), EvalError::TooDeep { limit: 100 });
    }
    assert_eq!(error(&"1".repeat(10_001)), EvalError::TooLong { limit: 10_000 });
    assert_eq!(value(&("1+".repeat(4999) + "1")), "5000");
    for expression in [
        "9^9^9^9",
        "9^9^9",
        "(2^33000)^2",
        "99999!",
        "10000!",
        "1e999999999999",
        "1e10001",
        "exp(1000)",
        "choose(10^9, 10^8)",
        "choose(99999, 40000)",
    ] {
        assert!(matches!(error(expression), EvalError::TooLarge { .. }), "{expression}");
    }
    for expression in [
        "1^(10^100)",
        "(-1)^(10^100 + 1)",
        "0^(10^100)",
        "1e-9999",
        "round(1/3, 9999)",
    ] {
        answer(expression);
    }
}

#[test]
fn every_function_has_a_usage_and_a_description() {
    for function in &FUNCTIONS {
        assert!(function.usage.starts_with(&format!("{}(", function.name)));
        assert!(!function.description.is_empty() && !function.description.ends_with('.'));
    }
}
