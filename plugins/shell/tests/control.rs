//! Control flow, functions, expansions and limits.

#![allow(clippy::panic, clippy::unwrap_used)]

use shell::{Outcome, Shell};

fn run(script: &str) -> Outcome {
    run_with(script, "")
}

fn run_with(script: &str, input: &str) -> Outcome {
    let mut shell = Shell::new("/".into(), Vec::new());
    shell
        .run(script, input)
        .unwrap_or_else(|error| panic!("{script}: {error}"))
}

/// Returns the output of a script that succeeds.
fn stdout(script: &str) -> String {
    let outcome = run(script);
    assert_eq!((outcome.status, outcome.stderr.as_str()), (0, ""), "{script}");
    outcome.stdout
}

fn error(script: &str) -> String {
    Shell::new("/".into(), Vec::new()).run(script, "").unwrap_err()
}

#[test]
fn conditions_choose_a_branch() {
    let script = "if [ $x -gt 2 ]; then echo big; elif [ $x -eq 2 ]\nthen echo two\nelse echo small; fi";
    for (x, expected) in [(1, "small\n"), (2, "two\n"), (3, "big\n")] {
        assert_eq!(stdout(&format!("x={x}; {script}")), expected);
    }
    assert_eq!(stdout("if false; then echo a; fi; echo $?"), "0\n");
    let script = "case $x in a|b) echo ab;; '*') echo star;; [0-9]*) echo digit;; (*) echo other; esac";
    for (x, expected) in [
        ("a", "ab"),
        ("b", "ab"),
        ("'*'", "star"),
        ("7up", "digit"),
        ("''", "other"),
    ] {
        assert_eq!(stdout(&format!("x={x}; {script}")), format!("{expected}\n"));
    }
    assert_eq!(stdout("case x in y) false;; esac"), "");
    assert_eq!(
        stdout("[ a = b -o 1 -lt 2 ] && [ ! -e nothing ] && [ \\( x \\) -a y ] && test -n x && echo ok"),
        "ok\n"
    );
    assert_eq!(run("[ a -lt 2 ]").status, 2);
    assert_eq!(stdout("(( 2 > 1 )) && echo yes; (( 0 )) || echo no"), "yes\nno\n");
}

#[test]
fn loops_repeat_and_are_left() {
    assert_eq!(
        stdout("for x in a 'b c' $(seq 2); do echo \"<$x>\"; done"),
        "<a>\n<b c>\n<1>\n<2>\n"
    );
    assert_eq!(
        stdout("i=0; while [ $i -lt 3 ]; do i=$((i + 1)); echo $i; done | tail -1"),
        "3\n"
    );
    assert_eq!(stdout("i=3; until [ $i = 0 ]\ndo\n  i=$((i-1))\ndone; echo $i"), "0\n");
    assert_eq!(
        stdout(
            "for a in 1 2 3; do for b in 1 2 3; do [ $b = 2 ] && continue 2; [ $a = 3 ] && break 2; echo $a$b; done; done"
        ),
        "11\n21\n"
    );
    assert_eq!(
        stdout("set -- p q; for x; do echo $x; done; for x in; do echo no; done"),
        "p\nq\n"
    );
    assert_eq!(stdout("while false; do :; done; echo $?"), "0\n");
    assert_eq!(
        run_with("while read -r a b; do echo \"$b-$a\"; done", "1 2 3\nx  y\n").stdout,
        "2 3-1\ny-x\n"
    );
    assert_eq!(
        stdout("printf 'a:b\\nc' | while IFS=: read x y || [ -n \"$x\" ]; do echo $x.$y; done"),
        "a.b\nc.\n"
    );
    assert_eq!(
        run_with("{ read first; cat; } | tr a-z A-Z; cat", "a\nb\n").stdout,
        "B\n"
    );
    assert_eq!(run("break").status, 1);
}

#[test]
fn functions_have_parameters_and_local_variables() {
    assert_eq!(
        stdout("greet() { echo \"$1 of $#: $*\"; }\ngreet a 'b c'; greet"),
        "a of 2: a b c\n of 0: \n"
    );
    assert_eq!(stdout("f() { local x=1; x=2; y=3; }; x=0; f; echo $x $y"), "0 3\n");
    assert_eq!(stdout("f() { return 4; echo no; }; f || echo $?"), "4\n");
    assert_eq!(
        stdout("fact() { if [ $1 -le 1 ]; then echo 1; else echo $(( $1 * $(fact $(( $1 - 1 ))) )); fi; }; fact 10"),
        "3628800\n"
    );
    assert_eq!(
        stdout("f() { for x in \"$@\"; do echo \"[$x]\"; done; }; f 'a b' '' c; f"),
        "[a b]\n[]\n[c]\n"
    );
    assert_eq!(
        stdout("f() { shift; echo $1 ${10}; }; f 1 2 3 4 5 6 7 8 9 10 11"),
        "2 11\n"
    );
    assert_eq!(
        stdout("up() { tr a-z A-Z; }; echo x | up; function g { echo g; }; g"),
        "X\ng\n"
    );
    assert_eq!(stdout("x=1; (x=2; cd /tmp; exit 3); echo $x $? $PWD"), "1 3 /\n");
    assert_eq!(
        run("echo a; exit 7; echo b"),
        Outcome {
            stdout: "a\n".to_owned(),
            stderr: String::new(),
            status: 7
        }
    );
    assert_eq!(
        stdout("{ echo a; echo b >&2; } 2>/dev/null | cat; eval 'echo $((1+1))'"),
        "a\n2\n"
    );
}

#[test]
fn parameters_are_expanded() {
    assert_eq!(
        stdout("unset x; echo ${x:-a b} \"${x-'c'}\" ${x:=d} $x ${x:+e} ${y+f}."),
        "a b 'c' d d e .\n"
    );
    assert_eq!(
        stdout("p=/a/b.tar.gz; echo ${p##*/} ${p#*/} ${p%.*} ${p%%.*} ${#p}"),
        "b.tar.gz a/b.tar.gz /a/b.tar /a/b 11\n"
    );
    assert_eq!(
        stdout("p=banana; echo ${p/an/x} ${p//an/x} ${p:1:3} ${p: -2} ${p/n*/}"),
        "bxana bxxa ana na ba\n"
    );
    assert_eq!(
        stdout("IFS=,; x=a,b,,c; for y in $x; do echo \"<$y>\"; done"),
        "<a>\n<b>\n<>\n<c>\n"
    );
    assert_eq!(stdout("echo `echo a \\`echo b\\`` $'x\\ty'"), "a b x\ty\n");
    let failed = run("echo a; echo ${x:?gone}; echo b");
    assert_eq!(
        (failed.stdout.as_str(), failed.stderr.as_str(), failed.status),
        ("a\n", "x: gone\n", 1)
    );
    assert!(
        run("set -u; echo $nothing; echo no")
            .stderr
            .contains("`nothing` is not set")
    );
}

#[test]
fn arithmetic_is_evaluated() {
    for (expression, expected) in [
        ("1 + 2 * 3", 7),
        ("(1 + 2) * -3 % 4", -1),
        ("7 / 2", 3),
        ("1 << 4 | 3 & ~1", 18),
        ("5 > 3 && 2 >= 2 ? 10 : 20", 10),
        ("0 && 1 / 0", 0),
        ("1 || (x = 5)", 1),
        ("0x1f + 010", 39),
        ("", 0),
        ("i++ + ++i", 2),
    ] {
        assert_eq!(
            stdout(&format!("echo $(({expression}))")),
            format!("{expected}\n"),
            "{expression}"
        );
    }
    assert_eq!(
        stdout("i=1; : $((i += 4)) $((j = i * 2)); echo $i $j $(( $i + 1 ))"),
        "5 10 6\n"
    );
    for (script, expected) in [
        ("echo $((1 / 0))", "division by zero"),
        ("echo $((9223372036854775807 + 1))", "does not fit"),
        ("echo $((1 +))", "a number is expected"),
        ("echo $((1 2))", "unexpected `2`"),
        ("x=a; echo $((x))", "`a` is not a number"),
    ] {
        let outcome = run(script);
        assert!(outcome.stderr.contains(expected), "{script}: {}", outcome.stderr);
        assert_eq!(outcome.status, 1);
    }
}

#[test]
fn options_end_a_script_at_its_first_failure() {
    assert_eq!(run("set -e; echo a; false; echo b").stdout, "a\n");
    assert_eq!(
        run("set -e; if false; then :; fi; false || true; ! true; f() { false; echo in; }; f && echo c").stdout,
        "in\nc\n"
    );
    assert_eq!(run("set -o pipefail; false | true").status, 1);
    assert_eq!(run("false | true").status, 0);
    assert_eq!(run("x=$(false)").status, 1);
}

#[test]
fn syntax_errors_have_a_line_and_a_column() {
    for (script, expected) in [
        (
            "echo a\nif true; then echo b",
            "line 2, column 21: `fi` is missing for the `if` of the command that begins in line 2",
        ),
        (
            "for x in 1; echo; done",
            "line 1, column 13: `do` is missing for the `for`",
        ),
        ("for 1 in a; do :; done", "line 1, column 5: `for` needs the name"),
        (
            "done",
            "line 1, column 1: unexpected `done`: there is no `do` before it",
        ),
        ("echo 'x", "line 1, column 6: the `'` is not closed"),
        ("echo a\n  echo \"$(ls", "line 2, column 9: the `$(` is not closed"),
        ("while :; do\ndone", "line 1, column 1: there is no command after `do`"),
        ("case x in a echo;; esac", "a `)` after the pattern"),
        ("f() echo", "the body of the function `f` is missing"),
        ("(ls", "line 1, column 1: the `(` is not closed"),
        ("ls)", "line 1, column 3: unexpected `)`"),
        ("[[ a ]]", "use `[ … ]`"),
        ("sleep 1 &", "line 1, column 9: background jobs"),
        ("echo ${x", "line 1, column 6: the `${` is not closed"),
        ("cat <<E\n$(\nE\n", "in the here-document `E`: the `$(` is not closed"),
        ("cat <<E\n", "line 1, column 5: the here-document is not closed"),
        ("for ((i=0;i<3;i++)); do :; done", "use `for i in $(seq 1 10)`"),
        ("ls |", "the script ends where a command is expected"),
    ] {
        let error = error(script);
        assert!(error.contains(expected), "{script}: {error}");
    }
}

#[test]
fn recursion_and_output_are_limited() {
    let limited = |script: &'static str| {
        std::thread::Builder::new()
            .stack_size(8 << 20)
            .spawn(move || error(script))
            .unwrap()
            .join()
            .unwrap()
    };
    assert!(limited("f() { f; }; f").contains("deeper than 160 levels"));
    assert!(limited("f() { x=$(f); }; f").contains("deeper than"));
    assert!(limited("x='eval \"$x\"'; eval \"$x\"").contains("deeper than"));
    assert!(limited("while :; do echo 0123456789; done").contains("larger than 4 MiB"));
    assert!(limited("x=0123456789; while :; do x=$x$x; done").contains("longer than 4 MiB"));
    let open = error(&"( ".repeat(5000));
    assert!(open.contains("nested deeper than 32"), "{open}");
    assert!(error(&"$(".repeat(5000)).contains("nested deeper than 32"));
    assert!(error(&"${x:-".repeat(5000)).contains("nested deeper than 32"));
    assert!(error(&"if ".repeat(5000)).contains("nested deeper than 32"));
    let deep = format!("echo $(({}1{}))", "(".repeat(5000), ")".repeat(5000));
    assert!(run(&deep).stderr.contains("nested deeper than 64"));
}
