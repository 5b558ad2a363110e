//! Native tools with which a model reads the blackboard and its process, and sends messages to the user.

mod blackboard;
mod communication;
mod process;

pub use blackboard::BlackboardTools;
pub use communication::{communicate_tool, progress_tool};
pub use process::ProcessTools;
