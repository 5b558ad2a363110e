//! Execution of compound commands.

use crate::arithmetic::evaluate;
use crate::execute::{Failure, Outcome, Run, Shell};
use crate::state::Flow;
use crate::syntax::{Compound, Script, Word};

impl Shell {
    pub(crate) fn run_compound(&mut self, compound: &Compound) -> Run<Outcome> {
        match compound {
            Compound::Group(script) => self.run_script(script),
            Compound::Subshell(script) => self.subshell(|shell| shell.run_script(script)),
            Compound::Arithmetic(expression) => {
                let expression = self.expand_to_text(expression)?;
                let value = evaluate(self, &expression).map_err(Failure::Script)?;
                Ok(Outcome::status(u8::from(value == 0)))
            }
            Compound::If { branches, otherwise } => self.run_if(branches, otherwise),
            Compound::For { name, words, body } => self.run_for(name, words.as_deref(), body),
            Compound::Loop {
                is_until,
                condition,
                body,
            } => self.run_loop(*is_until, condition, body),
            Compound::Case { subject, arms } => self.run_case(subject, arms),
        }
    }

    /// Runs a script whose failure does not end the shell, even with `set -e`.
    fn run_condition(&mut self, script: &Script) -> Run<Outcome> {
        self.conditions += 1;
        let outcome = self.run_script(script);
        self.conditions -= 1;
        outcome
    }

    fn run_if(&mut self, branches: &[(Script, Script)], otherwise: &Script) -> Run<Outcome> {
        let mut total = Outcome::default();
        for (condition, body) in branches {
            total.append(&self.run_condition(condition)?)?;
            if self.flow.is_some() {
                return Ok(total);
            }
            if self.status == 0 {
                total.append(&self.run_script(body)?)?;
                return Ok(total);
            }
        }
        self.status = 0;
        total.append(&self.run_script(otherwise)?)?;
        Ok(total)
    }

    fn run_for(&mut self, name: &str, words: Option<&[Word]>, body: &Script) -> Run<Outcome> {
        let values = match words {
            Some(words) => self.expand_to_arguments(words)?,
            None => self.state.parameters.clone(),
        };
        let mut total = Outcome::default();
        self.status = 0;
        for value in values {
            self.set_variable(name, &value);
            if self.run_body(body, &mut total)? {
                break;
            }
        }
        Ok(total)
    }

    fn run_loop(&mut self, is_until: bool, condition: &Script, body: &Script) -> Run<Outcome> {
        let mut total = Outcome::default();
        let mut status = 0;
        loop {
            self.loops += 1;
            let outcome = self.run_condition(condition);
            self.loops -= 1;
            total.append(&outcome?)?;
            let ends = self.flow.is_some() && self.apply_flow_to_loop();
            if ends || (self.status == 0) == is_until {
                break;
            }
            let is_left = self.run_body(body, &mut total)?;
            status = total.status;
            if is_left {
                break;
            }
        }
        if self.flow.is_none() {
            (self.status, total.status) = (status, status);
        }
        Ok(total)
    }

    /// Runs the body of a loop once, and returns whether the loop ends.
    fn run_body(&mut self, body: &Script, total: &mut Outcome) -> Run<bool> {
        self.loops += 1;
        let outcome = self.run_script(body);
        self.loops -= 1;
        total.append(&outcome?)?;
        Ok(self.apply_flow_to_loop())
    }

    /// Applies `break`, `continue` and the other requests to a loop, and returns whether the loop ends.
    fn apply_flow_to_loop(&mut self) -> bool {
        let (ends, flow) = match self.flow {
            None => (false, None),
            Some(Flow::Continue(1)) => (false, None),
            Some(Flow::Continue(levels)) => (true, Some(Flow::Continue(levels - 1))),
            Some(Flow::Break(1)) => (true, None),
            Some(Flow::Break(levels)) => (true, Some(Flow::Break(levels - 1))),
            flow => (true, flow),
        };
        self.flow = flow;
        ends
    }

    fn run_case(&mut self, subject: &Word, arms: &[(Vec<Word>, Script)]) -> Run<Outcome> {
        let subject = self.expand_to_text(subject)?;
        self.status = 0;
        for (patterns, body) in arms {
            for pattern in patterns {
                if self.expand_to_pattern(pattern)?.matches(&subject) {
                    self.status = 0;
                    return self.run_script(body);
                }
            }
        }
        Ok(Outcome::default())
    }
}
