//! Completion of the arguments of prompts and of the variables of resource templates.

use rmcp::model::{ArgumentInfo, CompletionInfo, Reference};

use super::served_content::ServedContent;

/// Returns the listed values of an argument or variable that begin with the typed text. The case is ignored. At most
/// [`CompletionInfo::MAX_VALUES`] values are returned.
///
/// # Errors
/// A message for the client, if the prompt or the resource does not exist.
pub(crate) fn complete(
    content: &ServedContent,
    reference: &Reference,
    argument: &ArgumentInfo,
) -> Result<CompletionInfo, String> {
    let values = match reference {
        Reference::Prompt(prompt) => content
            .prompt(&prompt.name)
            .ok_or_else(|| format!("no prompt is named `{}`", prompt.name.escape_debug()))?
            .values(&argument.name),
        Reference::Resource(template) => {
            let resource = content.template(&template.uri);
            let resource =
                resource.ok_or_else(|| format!("no resource has the URI `{}`", template.uri.escape_debug()))?;
            Some(resource.values(&argument.name))
        }
        _ => None,
    };
    let typed = argument.value.to_lowercase();
    let is_match = |value: &&String| value.to_lowercase().starts_with(&typed);
    let matching: Vec<String> = values.unwrap_or_default().iter().filter(is_match).cloned().collect();
    let total = matching.len();
    let suggestions = matching.into_iter().take(CompletionInfo::MAX_VALUES).collect();
    let mut info = CompletionInfo::new(suggestions)?;
    info.total = u32::try_from(total).ok();
    info.has_more = Some(total > CompletionInfo::MAX_VALUES);
    Ok(info)
}
