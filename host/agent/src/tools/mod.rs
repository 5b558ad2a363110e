//! Native tools that give a model access to its conversation: the blackboard, the process, the user.

mod blackboard;
mod communication;
mod process;

pub use blackboard::BlackboardTools;
pub use communication::{communicate_tool, progress_tool};
pub use process::ProcessTools;
