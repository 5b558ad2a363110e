//! Limits that are constants. Each has a row in the table of [`all_limits`](super::all_limits). Some are defaults that a setting
//! can change.

use std::time::Duration;

use super::amount::{Amount, IntoAmount};
use super::table::{Limit, LimitGroup, LimitSetting};

/// Defines constants, and their rows in the table of limits. The first line of a constant's documentation becomes the subject
/// of its row. After the value follow its unit, a variant of [`Amount`], and optionally the settings that change the limit.
macro_rules! limits {
    ($($group:ident {
        $(#[doc = $subject:literal] $(#[doc = $explanation:literal])*
        $name:ident: $type:ty = $value:expr, $unit:ident $(, $setting:literal)?;)*
    })*) => {
        $($(#[doc = $subject] $(#[doc = $explanation])* pub const $name: $type = $value;)*)*

        /// Returns the rows of all constants.
        pub(super) fn rows() -> Vec<Limit> {
            vec![$($(Limit {
                name: stringify!($name),
                group: LimitGroup::$group,
                subject: subject($subject),
                default: Amount::$unit($name.into_amount()),
                setting: setting(&[$($setting)?]),
            },)*)*]
        }
    };
}

limits! {
    Files {
        /// Maximum size of a package's manifest.
        MANIFEST_BYTES_MAX: u64 = 256 << 10, Bytes;
        /// Maximum size of the WIT text next to a component, and of the WIT and docs in it.
        WIT_BYTES_MAX: u64 = 1 << 20, Bytes;
        /// Maximum size of the user interfaces in a component.
        UI_BYTES_MAX: u64 = 4 << 20, Bytes;
        /// Maximum size of a file or custom section that requests a component's capabilities in the format of another host.
        REQUESTS_BYTES_MAX: u64 = 64 << 10, Bytes;
        /// Maximum size of the grants file.
        /// A hundred plugins with ten rules each need a tenth of this size.
        GRANTS_BYTES_MAX: u64 = 1 << 20, Bytes;
        /// Maximum size of the secrets file.
        SECRETS_BYTES_MAX: u64 = 1 << 20, Bytes;
        /// Maximum length of one secret.
        SECRET_BYTES_MAX: u64 = 64 << 10, Bytes;
        /// Maximum size of `toolwit.toml`.
        PROJECT_BYTES_MAX: u64 = 256 << 10, Bytes;
        /// Maximum size of the cache of compiled code.
        /// The default suffices for several hundred components that a large toolchain builds.
        CODE_CACHE_BYTES_MAX: u64 = 2 << 30, Bytes, "`CodeCache::set_bytes_max`";
        /// Maximum size of an index of packages.
        /// An entry has about 200 bytes, so the limit suffices for 80,000 releases.
        PACKAGE_INDEX_BYTES_MAX: u64 = 16 << 20, Bytes;
        /// Maximum time of the download of a package or an index.
        DOWNLOAD_WALL_MAX: Duration = Duration::from_secs(120), Time, "`HttpDownloader::new`, `add --timeout`";
        /// Maximum number of redirects of a download.
        DOWNLOAD_REDIRECTS_MAX: usize = 5, Count;
        /// Maximum size of a script of calls.
        SCRIPT_BYTES_MAX: u64 = 64 << 20, Bytes;
        /// Maximum size of a prompt that is read from a file or from standard input.
        PROMPT_BYTES_MAX: u64 = 4 << 20, Bytes;
        /// Maximum size of a scenario of the scripted model.
        /// A long conversation has a few hundred lines.
        SCENARIO_BYTES_MAX: u64 = 1 << 20, Bytes;
        /// Maximum size of a file of word vectors.
        /// Usual files have 16 to 64 MiB. The vectors are kept in memory.
        VECTORS_BYTES_MAX: u64 = 256 << 20, Bytes;
        /// Maximum size of the tokenizer of word vectors.
        TOKENIZER_BYTES_MAX: u64 = 16 << 20, Bytes;
    }
    Components {
        /// Maximum number of exported functions of a component that become tools.
        FUNCTIONS_MAX: usize = 4_096, Count;
        /// Maximum number of parts of the types of one function.
        /// Each type, field and case is a part, and a long name is several parts.
        FUNCTION_PARTS_MAX: usize = 4_096, Count;
        /// Maximum number of parts of the types of all functions of a component.
        COMPONENT_PARTS_MAX: usize = 1 << 17, Count;
        /// Maximum nesting depth of types.
        TYPE_DEPTH_MAX: usize = 64, Count;
        /// Maximum nesting depth of components inside a component.
        COMPONENT_DEPTH_MAX: usize = 100, Count;
        /// Maximum number of instantiation steps that the sections of a component describe.
        INSTANTIATION_STEPS_MAX: usize = 200_000, Count;
        /// Maximum work to compile one function, in units of about one instruction, estimated from its code.
        /// A function with many variables and branches is more expensive to compile than its size suggests.
        FUNCTION_WORK_MAX: u64 = 4 << 20, Count;
        /// Maximum work to compile a component, in units of about one instruction, estimated from its code.
        COMPONENT_WORK_MAX: u64 = 256 << 20, Count;
        /// Maximum length of the docs of one function, in characters.
        FUNCTION_DOCS_CHARS_MAX: usize = 4_096, Count;
        /// Maximum length of a tool's description with the manifest's additions, in characters.
        DESCRIPTION_CHARS_MAX: usize = 8_192, Count;
    }
    DynamicTools {
        /// Maximum number of dynamic tools of a component.
        DYNAMIC_TOOLS_MAX: usize = 256, Count;
        /// Maximum time of one discovery of dynamic tools, compilation included.
        /// A component that queries a server may need seconds.
        DISCOVERY_WALL_MAX: Duration = Duration::from_secs(10), Time;
        /// Maximum size of a schema that a component or an MCP server returns.
        /// Schemas are part of every request to a model.
        SCHEMA_BYTES_MAX: usize = 64 << 10, Bytes;
        /// Maximum depth at which a reference of a schema of a component or an MCP server is followed.
        /// A deeper reference accepts all values.
        SCHEMA_DEPTH_MAX: usize = 64, Count;
        /// Maximum number of JSON values of a schema of a component or an MCP server that are checked, references followed.
        /// If each level of a schema refers to the next level twice, the number doubles with each level.
        SCHEMA_PARTS_MAX: usize = 8_192, Count;
        /// Maximum number of JSON values of all schemas of a component.
        /// The limit suffices for 256 tools of 250 values each.
        /// For an MCP server, this limit and the limits of patterns apply to each group of 256 tools.
        SCHEMA_PARTS_SUM_MAX: usize = 64 << 10, Count;
        /// Maximum number of patterns of all schemas of a component.
        SCHEMA_PATTERNS_MAX: usize = 256, Count;
        /// Maximum compiled size of one pattern.
        SCHEMA_PATTERN_BYTES_MAX: usize = 256 << 10, Bytes;
        /// Maximum compiled size of all patterns of a component.
        SCHEMA_PATTERN_BYTES_SUM_MAX: usize = 4 << 20, Bytes;
    }
    McpServers {
        /// Maximum size of one message of an MCP server.
        /// Images and audio are part of messages.
        MCP_MESSAGE_BYTES_MAX: usize = 16 << 20, Bytes;
        /// Maximum depth of the values in one message of an MCP server.
        /// Parsers of JSON stop at 128 levels, and a message adds a few around a result.
        MCP_MESSAGE_DEPTH_MAX: usize = 120, Count;
        /// Maximum number of values and names in one message of an MCP server.
        /// In memory, values and names are far larger than their text. A page of a thousand tools with long schemas has about
        /// 200,000 values and names.
        MCP_MESSAGE_PARTS_MAX: usize = 256 << 10, Count;
        /// Maximum number of values and names in one message of an MCP client.
        /// Most of them belong to the arguments of a call. A table of ten thousand rows with ten columns fits, if each row is a list.
        MCP_REQUEST_PARTS_MAX: usize = 128 << 10, Count;
        /// Maximum number of tools of an MCP server; the others are withheld.
        MCP_TOOLS_MAX: usize = 1_024, Count;
        /// Maximum number of pages of one listing of an MCP server.
        /// A listing returns all tools, resources or prompts, in one request for each page.
        MCP_PAGES_MAX: usize = 64, Count;
        /// Maximum number of resources or prompts that a list shows to a model.
        MCP_LISTED_MAX: usize = 200, Count;
        /// Maximum time to start an MCP server and agree on a protocol revision.
        /// Runners such as `npx` download the server first.
        MCP_STARTUP_WALL_MAX: Duration = Duration::from_secs(60), Time, "`startup_timeout`, `ServerConfig::with_startup_timeout`";
        /// Maximum time of one listing of an MCP server, all its pages included.
        MCP_LIST_WALL_MAX: Duration = Duration::from_secs(30), Time;
        /// Maximum time of a call of an MCP tool without progress.
        MCP_CALL_WALL_MAX: Duration = Duration::from_secs(60), Time, "`timeout`, `ServerConfig::with_timeout`";
        /// Maximum time of a call of an MCP tool that reports progress.
        MCP_PROGRESS_WALL_MAX: Duration = Duration::from_secs(600), Time;
        /// Maximum number of times that a call answers requests of an MCP server for input.
        MCP_INPUT_ROUNDS_MAX: usize = 8, Count;
        /// Maximum number of connections to one MCP server: one for each caller with a token of its own.
        MCP_CONNECTIONS_MAX: usize = 64, Count;
        /// Maximum size of a file that configures MCP servers.
        MCP_CONFIG_BYTES_MAX: u64 = 256 << 10, Bytes;
    }
    HostInterfaces {
        /// Maximum number of random bytes that one host call returns.
        RANDOM_BYTES_MAX: u64 = 1 << 20, Bytes;
        /// Maximum size of the headers of one HTTP request or response.
        HEADER_BYTES_MAX: usize = 64 << 10, Bytes;
        /// Maximum length of the path of an open file or directory, as the guest sees it.
        GUEST_PATH_BYTES_MAX: usize = 4 << 10, Bytes;
        /// Maximum time of one HTTP request, from the name lookup to the last byte of the response, and never beyond the call.
        REQUEST_WALL_MAX: Duration = Duration::from_secs(20), Time;
        /// Maximum time until an HTTP response starts.
        FIRST_BYTE_WALL_MAX: Duration = Duration::from_secs(15), Time;
        /// Maximum time between two reads of an HTTP response.
        BETWEEN_BYTES_WALL_MAX: Duration = Duration::from_secs(5), Time;
        /// Maximum time of a connection attempt to one address.
        CONNECT_WALL_MAX: Duration = Duration::from_secs(10), Time;
        /// Maximum number of bytes in a writable directory.
        DIRECTORY_BYTES_MAX: u64 = 64 << 20, Bytes, "`quota` of the directory's grant";
        /// Maximum number of files and directories in a writable directory.
        DIRECTORY_ENTRIES_MAX: u64 = 1_000_000, Count;
        /// Maximum memory of one artifact when it is parsed.
        /// The host estimates the memory from the text before parsing. All artifacts of one `tool-result` share the limit.
        ARTIFACT_WEIGHT_MAX: usize = 16 << 20, Bytes;
        /// Maximum length of a key and of a bucket's name in a key–value store.
        KEY_BYTES_MAX: usize = 1 << 10, Bytes;
        /// Maximum length of the text that one call of `output` shows to the user.
        OUTPUT_BYTES_MAX: usize = 8 << 10, Bytes;
        /// Maximum number of questions of a call, with those of nested calls.
        QUESTIONS_MAX: u32 = 8, Count;
        /// Maximum time in which a person answers a question.
        /// The time does not count towards the time limit of the call.
        ANSWER_WALL_MAX: Duration = Duration::from_secs(600), Time;
        /// Maximum length of the message of a form.
        FORM_MESSAGE_BYTES_MAX: usize = 4 << 10, Bytes;
        /// Maximum size of the schema of a form.
        FORM_SCHEMA_BYTES_MAX: usize = 16 << 10, Bytes;
        /// Maximum number of fields of a form.
        FORM_FIELDS_MAX: usize = 16, Count;
        /// Maximum number of options of a choice in a form.
        FORM_OPTIONS_MAX: usize = 64, Count;
        /// Maximum length of the title of a field or an option of a form, in characters.
        FORM_TEXT_CHARS_MAX: usize = 120, Count;
        /// Maximum size of the answer to a form, as JSON.
        FORM_ANSWER_BYTES_MAX: usize = 64 << 10, Bytes;
    }
    Conversations {
        /// Maximum size of the arguments of a call, as JSON.
        /// Responses of models are far shorter.
        ARGUMENT_BYTES_MAX: usize = 4 << 20, Bytes;
        /// Maximum number of values and names in the arguments of a call, and in other JSON that a model or a tool writes.
        /// In memory, values and names are far larger than their text. A table of ten thousand rows with ten columns fits, if each
        /// row is a list.
        ARGUMENT_PARTS_MAX: usize = 128 << 10, Count;
        /// Maximum size of a picture that a model sees.
        /// Every provider accepts pictures of this size. A larger picture does not reach the model.
        PICTURE_BYTES_MAX: usize = 3 << 20, Bytes;
        /// Maximum number of pictures of one message.
        PICTURES_PER_MESSAGE_MAX: usize = 8, Count;
        /// Maximum number of pictures of a request to a model.
        /// The model sees the newest ones. Providers accept only small pictures in requests with more.
        PICTURES_PER_REQUEST_MAX: usize = 20, Count;
        /// Maximum size of all pictures of a request to a model.
        /// The model sees the newest ones.
        REQUEST_PICTURES_BYTES_MAX: usize = 12 << 20, Bytes;
        /// Maximum memory of the arguments of earlier calls that a conversation keeps for its strategies.
        /// Beyond the limit, the oldest arguments are dropped, except those of the last successful call of each tool.
        LOGGED_ARGUMENTS_BYTES_MAX: u64 = 16 << 20, Bytes;
        /// Maximum number of steps of the validation of arguments against a schema.
        /// The longest arguments take a few million steps with an ordinary schema.
        VALIDATION_STEPS_MAX: u64 = 16 << 20, Count;
        /// Maximum length of the name of a tool.
        /// Every provider accepts names of this length.
        NAME_BYTES_MAX: usize = 64, Bytes;
        /// Maximum number of tools that `Exposure::Auto` shows without a search.
        /// Models choose badly among more tools, and each definition costs tokens in every request.
        TOOLS_VISIBLE_MAX: usize = 40, Count, "`ToolwitBuilder::tools_visible_max`";
        /// Maximum time that a search waits for the sources of tools.
        /// For a slower source, the tools that it last listed are searched.
        SEARCH_WALL_MAX: Duration = Duration::from_secs(5), Time;
        /// Maximum time that a turn waits for the tools of a source, such as a server.
        /// A slower source continues to start, and its tools come later.
        SOURCE_WALL_MAX: Duration = Duration::from_secs(15), Time;
        /// Maximum depth of agents inside agents.
        /// Each level multiplies the possible cost of a run.
        AGENT_DEPTH_MAX: u32 = 4, Count;
        /// Maximum depth of facades inside facades.
        /// Real catalogues have fewer levels. The limit stops facades that create facades recursively.
        FACADE_DEPTH_MAX: usize = 8, Count;
        /// Maximum length of the id of an entity.
        /// The id appears in results and in tool names.
        ENTITY_ID_BYTES_MAX: usize = 256, Bytes;
        /// Maximum number of entities of one type in a result that have tools of their own.
        /// If a result has more entities of a type, they share one set of tools, which take the id as an argument. The limit
        /// applies to native objects and to resources of plugins.
        ENTITIES_WITH_OWN_TOOLS_MAX: usize = 16, Count;
        /// Maximum time of one decision of an interceptor.
        /// An interceptor delays every call that it receives.
        INTERCEPTOR_WALL_MAX: Duration = Duration::from_secs(5), Time;
        /// Maximum number of background tasks of a conversation.
        BACKGROUND_TASKS_MAX: usize = 64, Count;
        /// Maximum number of objects on a blackboard.
        /// Models cannot choose among more than a thousand objects.
        BLACKBOARD_ENTRIES_MAX: usize = 1_000, Count, "`BlackboardLimits`";
        /// Maximum memory of all objects on a blackboard, estimated from their JSON.
        BLACKBOARD_BYTES_MAX: u64 = 16 << 20, Bytes, "`BlackboardLimits`";
    }
    Runs {
        /// Maximum number of inferences of a run.
        /// The default suffices for real tasks and ends a loop before it becomes expensive.
        ITERATIONS_MAX: u32 = 20, Count, "`--iterations`, `LoopLimits::iterations_max`";
        /// Maximum number of tool calls of a run.
        CALLS_MAX: u32 = 100, Count, "`--calls`, `LoopLimits::calls_max`";
        /// Maximum number of calls of one response that run; the other calls are answered with an error.
        CALLS_PER_RESPONSE_MAX: u32 = 32, Count, "`LoopLimits::calls_per_response_max`";
        /// Maximum time of a run.
        /// The default allows for slow tools.
        RUN_WALL_MAX: Duration = Duration::from_secs(600), Time, "`--run-wall`, `LoopLimits::wall_ms_max`";
        /// Maximum size of a result in one message; the model reads the rest with `read_result`.
        SHOWN_RESULT_BYTES_MAX: usize = 32 << 10, Bytes, "`LoopLimits::result_bytes_max`";
        /// Maximum size of the artifacts of a call in a session or trace, as JSON.
        /// The limit suffices for records and small images.
        RECORDED_ARTIFACTS_BYTES_MAX: usize = 1 << 20, Bytes;
        /// Maximum size of the artifacts of a run in a session or trace, as JSON.
        /// The limit keeps a long session small enough to be read into memory.
        RECORDED_RUN_ARTIFACTS_BYTES_MAX: usize = 16 << 20, Bytes;
        /// Maximum number of tools that are declared to the model; beyond it, the least recently used are hidden.
        /// Providers reject requests with more tools.
        DECLARED_TOOLS_MAX: usize = 128, Count, "`LoopLimits::tools_max`";
    }
}

/// Returns the subject of a row: the first line of the documentation without `Maximum` and the full stop.
fn subject(documentation: &'static str) -> &'static str {
    documentation
        .trim()
        .trim_start_matches("Maximum ")
        .trim_end_matches('.')
}

/// Returns the setting of a row from the optional text in the definition of its constant.
fn setting(text: &[&'static str]) -> LimitSetting {
    text.first()
        .map_or(LimitSetting::Fixed, |names| LimitSetting::Named(names))
}
