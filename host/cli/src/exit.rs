//! Exit codes.

use std::process::ExitCode;

use toolwit::{Error, ErrorKind, Phase};

/// The exit code of a command. A larger code is worse.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u8)]
pub(crate) enum Exit {
    /// The command succeeded.
    Success = 0,
    /// The tool or the model returned an error.
    Failed = 1,
    /// The command line, its arguments or a configuration file is wrong.
    UsageOrConfiguration = 2,
    /// A plugin could not be built or loaded.
    NotLoaded = 3,
    /// An exceeded limit or a denied access stopped the command.
    Stopped = 4,
    /// The user interrupted the command.
    Interrupted = 130,
}

impl Exit {
    /// Returns the exit code of a command that failed with this error.
    pub(crate) fn of(error: &Error) -> Self {
        match (error.kind, error.phase) {
            (ErrorKind::Cancelled, _) => Self::Interrupted,
            (ErrorKind::Internal, _) => Self::Failed,
            // An error of a package names its plugin. An error of the command's own configuration does not.
            (ErrorKind::Configuration, Phase::Registry) if error.plugin.is_some() => Self::NotLoaded,
            (ErrorKind::Configuration, _) | (ErrorKind::Io, Phase::Registry) => Self::UsageOrConfiguration,
            (ErrorKind::InvalidArguments | ErrorKind::UnknownTool | ErrorKind::MissingKey, _) => {
                Self::UsageOrConfiguration
            }
            (ErrorKind::AmbiguousTool | ErrorKind::ToolUnavailable, _) => Self::UsageOrConfiguration,
            (_, Phase::Load | Phase::Link) | (ErrorKind::Build, _) => Self::NotLoaded,
            (ErrorKind::Denied | ErrorKind::LoopLimit, _) => Self::Stopped,
            (kind, _) if kind.is_limit() => Self::Stopped,
            _ => Self::Failed,
        }
    }
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        Self::from(exit as u8)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kind_and_phase_of_an_error_decide_the_exit_code() {
        let cases = [
            (ErrorKind::Tool, Phase::Execute, 1),
            (ErrorKind::Trap, Phase::Execute, 1),
            (ErrorKind::Model, Phase::Model, 1),
            (ErrorKind::InvalidArguments, Phase::Validate, 2),
            (ErrorKind::AmbiguousTool, Phase::Validate, 2),
            (ErrorKind::Io, Phase::Registry, 2),
            (ErrorKind::MissingKey, Phase::Validate, 2),
            (ErrorKind::Io, Phase::Load, 3),
            (ErrorKind::MalformedComponent, Phase::Load, 3),
            (ErrorKind::UnknownImport, Phase::Link, 3),
            (ErrorKind::FileBytes, Phase::Load, 3),
            (ErrorKind::Build, Phase::Build, 3),
            (ErrorKind::Fuel, Phase::Execute, 4),
            (ErrorKind::Memory, Phase::Instantiate, 4),
            (ErrorKind::Denied, Phase::Execute, 4),
            (ErrorKind::Cancelled, Phase::Execute, 130),
        ];
        let package_error = Error::new(ErrorKind::Configuration, Phase::Registry, "it failed").with_plugin("a");
        assert_eq!(Exit::of(&package_error) as u8, 3);
        for (kind, phase, number) in cases {
            let exit = Exit::of(&Error::new(kind, phase, "it failed"));
            assert_eq!(exit as u8, number, "{kind} in {phase}");
        }
    }

    #[test]
    fn worse_exit_codes_are_larger() {
        assert_eq!(Exit::Success.max(Exit::Failed), Exit::Failed);
        assert_eq!(Exit::Interrupted.max(Exit::Stopped), Exit::Interrupted);
    }
}
