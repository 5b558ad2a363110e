//! Properties of models that follow from their names.

/// Beginnings of the names of OpenAI's reasoning models, without the name of a provider before them.
const OPENAI_REASONING_MODELS: [&str; 6] = ["o1", "o3", "o4", "gpt-5", "gpt-6", "codex"];

/// Parts of the names of other models that reason without a request for it.
const REASONING_MODELS: [&str; 9] = [
    "gemini-2.5",
    "gemini-3",
    "deepseek-r",
    "deepseek-reasoner",
    "gpt-oss",
    "magistral",
    "qwq",
    "thinking",
    "reasoning",
];

/// Parts of the names of models that take pictures, in lower case. Each stands for all later versions and sizes.
const PICTURE_MODELS: [&str; 29] = [
    "claude-",
    "gemini-",
    "gpt-4o",
    "gpt-4.1",
    "gpt-4.5",
    "gpt-4-turbo",
    "gpt-5",
    "gpt-6",
    "chatgpt-",
    "computer-use",
    "pixtral",
    "mistral-small-3.",
    "mistral-small-2503",
    "mistral-small-2506",
    "mistral-small-latest",
    "mistral-medium",
    "mistral-large-2512",
    "llama-4",
    "llama4",
    "vision",
    "llava",
    "-vl",
    "qwen2.5vl",
    "gemma-3-",
    "gemma3",
    "internvl",
    "minicpm-v",
    "moondream",
    "grok-4",
];

/// Parts of the names of models that match [`PICTURE_MODELS`] and take no pictures.
const TEXT_MODELS: [&str; 11] = [
    "claude-2",
    "claude-instant",
    "gemma-3-270m",
    "gemma-3-1b",
    "gemma3:270m",
    "gemma3:1b",
    "gemini-embedding",
    "gpt-4-turbo-preview",
    "o1-mini",
    "o1-preview",
    "o3-mini",
];

/// Returns the name of a model without the name of a provider before it, such as `openai/`.
fn base_name(model: &str) -> &str {
    model.rsplit('/').next().unwrap_or(model)
}

/// Returns whether the model is a reasoning model of OpenAI.
pub(crate) fn is_openai_reasoning_model(model: &str) -> bool {
    let name = base_name(model);
    OPENAI_REASONING_MODELS.iter().any(|start| name.starts_with(start))
}

/// Returns whether the model reasons although the request does not set an effort.
pub(crate) fn reasons_by_default(model: &str) -> bool {
    let name = base_name(model).to_lowercase();
    is_openai_reasoning_model(&name) || REASONING_MODELS.iter().any(|part| name.contains(part))
}

/// Returns whether the model is known to take pictures.
pub(crate) fn accepts_pictures(model: &str) -> bool {
    let name = base_name(model).to_lowercase();
    let takes_pictures = ["o1", "o3", "o4"].iter().any(|start| name.starts_with(start))
        || PICTURE_MODELS.iter().any(|part| name.contains(part));
    takes_pictures && !TEXT_MODELS.iter().any(|part| name.contains(part))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn known_models_reason_or_take_pictures_and_unknown_models_do_not() {
        for model in [
            "gpt-5-mini",
            "openai/o3",
            "gemini-3-pro",
            "deepseek-reasoner",
            "Qwen/QwQ-32B",
        ] {
            assert!(reasons_by_default(model), "{model}");
        }
        for model in ["gpt-4o", "claude-sonnet-4-5", "llama3", "mistral-large"] {
            assert!(!reasons_by_default(model), "{model}");
        }
        for model in [
            "gpt-5",
            "openai/gpt-4o-mini",
            "claude-sonnet-4-5",
            "models/gemini-2.5-flash",
            "Qwen2.5-VL-7B",
        ] {
            assert!(accepts_pictures(model), "{model}");
        }
        for model in [
            "gpt-3.5-turbo",
            "llama3",
            "gemma-3-270m",
            "deepseek-chat",
            "o1-mini",
            "my-model",
        ] {
            assert!(!accepts_pictures(model), "{model}");
        }
    }
}
