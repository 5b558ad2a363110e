//! Compares decisions, explanations and the accessors of [`EffectiveRights`] with a second, naive implementation of the rules. The
//! grants and requests are random.

use std::collections::{BTreeMap, BTreeSet};

use proptest::prelude::*;

use super::*;
use crate::inspect::declared_capabilities::Capability;

const HOSTS: [&str; 3] = ["a.example", "b.example", "c.example"];
const SCHEMES: [&str; 2] = ["https", "http"];
const PORTS: [u16; 2] = [443, 8443];
const METHODS: [&str; 2] = ["GET", "POST"];
const URL_PATHS: [&str; 4] = ["/", "/v1", "/v1/a", "/v2"];
const DIRECTORIES: [&str; 4] = ["/data", "/data/in", "/data-secret", "/out"];
const FILES: [&str; 6] = [
    "/data/a",
    "/data/in/a",
    "/data-secret/a",
    "/out",
    "/other/a",
    "/data/../etc",
];
const NAMES: [&str; 3] = ["A", "B", "C"];

/// For each capability, an import that declares the capability.
const IMPORTS: [(&str, Capability); 11] = [
    ("wasi:http/outgoing-handler", Capability::Http),
    ("wasi:filesystem/preopens", Capability::Files),
    ("wasi:cli/environment", Capability::Env),
    ("wasi:config/store", Capability::Config),
    ("wasi:keyvalue/store", Capability::Keyvalue),
    ("toolwit:plugin/tools", Capability::Tools),
    ("toolwit:plugin/context", Capability::Context),
    ("toolwit:plugin/blackboard", Capability::Blackboard),
    ("toolwit:plugin/ask", Capability::Ask),
    ("wasi:clocks/wall-clock", Capability::Clock),
    ("wasi:random/random", Capability::Random),
];

/// A random rule for HTTP requests: the indices of host, scheme, port and path, and whether each method is allowed.
type HttpSpec = (usize, usize, usize, usize, [bool; 2]);

/// A random HTTP request: the indices of host, scheme, port, path and method.
type HttpRequestSpec = (usize, usize, usize, usize, usize);

/// A random rule for a secret: the index of its name, whether the secret is sent with requests, and the index of the variable that
/// exposes the secret.
type SecretSpec = (usize, bool, Option<usize>);

/// The version of the plugin to which a random grant applies: the component of the test, another component, or any component.
#[derive(Clone, Copy, Debug, PartialEq)]
enum VersionSpec {
    Tested,
    Other,
    Any,
}

/// A random grant. Each `usize` is an index in one of the constant arrays.
#[derive(Clone, Debug)]
struct GrantSpec {
    is_for_plugin: bool,
    version: VersionSpec,
    http: Vec<HttpSpec>,
    /// The granted directories, and whether each of them is writable.
    files: BTreeMap<usize, bool>,
    env: BTreeSet<usize>,
    secrets: Vec<SecretSpec>,
    config: BTreeSet<usize>,
    tools: BTreeSet<usize>,
    context: BTreeSet<usize>,
    has_keyvalue: bool,
    has_ask: bool,
    /// Whether the granted blackboard is writable; `None` if it is not granted.
    blackboard: Option<bool>,
    frozen_clock: Option<u64>,
    frozen_random: Option<u64>,
}

impl GrantSpec {
    fn applies(&self) -> bool {
        self.is_for_plugin && self.version != VersionSpec::Other
    }

    fn to_toml(&self) -> String {
        let plugin = if self.is_for_plugin { "p" } else { "q" };
        let version = match self.version {
            VersionSpec::Tested => format!("digest = \"sha256:{DIGEST}\""),
            VersionSpec::Other => format!("digest = \"sha256:{}\"", DIGEST.replace('0', "1")),
            VersionSpec::Any => "any-version = true".to_owned(),
        };
        let list = |key: &str, items: Vec<String>| format!("{key} = [{}]\n", items.join(", "));
        let quoted = |names: &BTreeSet<usize>| names.iter().map(|index| format!("\"{}\"", NAMES[*index])).collect();
        let mut text = format!("[[grant]]\nplugin = \"{plugin}\"\n{version}\n");
        text += &list("http", self.http.iter().map(http_toml).collect());
        let directory = |(index, is_writable): (&usize, &bool)| {
            let access = if *is_writable { "read-write" } else { "read" };
            format!(
                "{{ host = \"/srv/{index}\", guest = \"{}\", access = \"{access}\" }}",
                DIRECTORIES[*index]
            )
        };
        text += &list("files", self.files.iter().map(directory).collect());
        text += &list(
            "env",
            self.env
                .iter()
                .map(|index| format!("{{ name = \"{}\" }}", NAMES[*index]))
                .collect(),
        );
        text += &list("secrets", self.secrets.iter().map(secret_toml).collect());
        let settings: Vec<_> = self
            .config
            .iter()
            .map(|index| format!("{} = \"v\"", NAMES[*index]))
            .collect();
        text += &format!("config = {{ {} }}\n", settings.join(", "));
        text += &list("tools", quoted(&self.tools));
        text += &list("context", quoted(&self.context));
        if self.has_keyvalue {
            text += "keyvalue = { quota = \"1KiB\" }\n";
        }
        if self.has_ask {
            text += "ask = true\n";
        }
        if let Some(is_writable) = self.blackboard {
            text += if is_writable {
                "blackboard = \"read-write\"\n"
            } else {
                "blackboard = \"read\"\n"
            };
        }
        for (key, frozen_value) in [("clock", self.frozen_clock), ("random", self.frozen_random)] {
            if let Some(value) = frozen_value {
                text += &format!("{key} = {{ frozen = {value} }}\n");
            }
        }
        text
    }
}

fn http_toml((host, scheme, port, path, methods): &HttpSpec) -> String {
    let methods: Vec<_> = (0..2)
        .filter(|index| methods[*index])
        .map(|index| format!("\"{}\"", METHODS[index]))
        .collect();
    format!(
        "{{ host = \"{}\", scheme = \"{}\", port = {}, path = \"{}\", methods = [{}] }}",
        HOSTS[*host],
        SCHEMES[*scheme],
        PORTS[*port],
        URL_PATHS[*path],
        methods.join(", ")
    )
}

fn secret_toml((name, is_sent, variable): &SecretSpec) -> String {
    let mut fields = vec![format!("name = \"{}\"", NAMES[*name])];
    if *is_sent {
        fields.push("host = \"a.example\", bearer = true".to_owned());
    }
    if let Some(variable) = variable {
        fields.push(format!("expose = true, variable = \"{}\"", NAMES[*variable]));
    }
    format!("{{ {} }}", fields.join(", "))
}

/// A random plugin with all grants of its host. Each `usize` is an index in one of the constant arrays.
#[derive(Clone, Debug)]
struct PluginSpec {
    imports: BTreeSet<usize>,
    grants: Vec<GrantSpec>,
    /// A directory that does not exist on the host.
    missing_directory: Option<usize>,
    /// Whether a granted secret is missing.
    lacks_secret: bool,
}

impl PluginSpec {
    fn declares(&self, capability: Capability) -> bool {
        self.imports.iter().any(|index| IMPORTS[*index].1 == capability)
    }

    fn applicable_grants(&self) -> impl Iterator<Item = &GrantSpec> {
        self.grants.iter().filter(|grant| grant.applies())
    }

    fn rights(&self) -> EffectiveRights {
        let text: String = self.grants.iter().map(GrantSpec::to_toml).collect();
        let grants = parse_grants(&format!("version = 1\n{text}")).unwrap();
        let declared = DeclaredCapabilities::from_imports(self.imports.iter().map(|index| IMPORTS[*index].0));
        let mut rights = EffectiveRights::new(&declared, &grants, "p", DIGEST);
        if let Some(index) = self.missing_directory {
            let rule = UnenforceableRule {
                position: None,
                reason: "it does not exist".to_owned(),
            };
            rights
                .unenforceable_directories
                .insert(DIRECTORIES[index].to_owned(), rule);
        }
        if self.lacks_secret {
            let grants = parse_grant_with("secrets = [{ name = \"missing\", host = \"a.example\", bearer = true }]");
            rights.missing.secrets = grants.unwrap().grants.remove(0).rules.secrets;
        }
        rights
    }

    /// Decides according to the documentation of the rules, without the code of the rules.
    fn allows(&self, request: &RequestSpec) -> bool {
        if self.lacks_secret {
            return false;
        }
        let mut grants = self.applicable_grants();
        match *request {
            RequestSpec::Clock => self.declares(Capability::Clock),
            RequestSpec::Random => self.declares(Capability::Random),
            RequestSpec::Http(request) => {
                self.declares(Capability::Http)
                    && grants.any(|grant| grant.http.iter().any(|rule| allows_http(rule, &request)))
            }
            RequestSpec::File(file, writes) => {
                // Of two rules for a directory, the first one applies.
                let mut directories = BTreeMap::new();
                for (index, is_writable) in grants.flat_map(|grant| &grant.files) {
                    directories.entry(*index).or_insert(*is_writable);
                }
                let is_inside = |index: &usize| {
                    let directory = DIRECTORIES[*index];
                    FILES[file] == directory || FILES[file].starts_with(&format!("{directory}/"))
                };
                let innermost = directories
                    .iter()
                    .filter(|(index, _)| is_inside(index) && self.missing_directory != Some(**index))
                    .max_by_key(|(index, _)| DIRECTORIES[**index].len());
                self.declares(Capability::Files)
                    && !FILES[file].contains("..")
                    && innermost.is_some_and(|(_, is_writable)| *is_writable || !writes)
            }
            RequestSpec::Secret(name) => grants.any(|grant| {
                let is_usable = |(granted_name, is_sent, variable): &SecretSpec| {
                    *granted_name == name
                        && ((*is_sent && self.declares(Capability::Http))
                            || (variable.is_some() && self.declares(Capability::Env)))
                };
                grant.secrets.iter().any(is_usable)
            }),
            RequestSpec::Variable(name) => {
                self.declares(Capability::Env)
                    && grants.any(|grant| {
                        let is_exposed = grant.secrets.iter().any(|(_, _, variable)| *variable == Some(name));
                        grant.env.contains(&name) || is_exposed
                    })
            }
            RequestSpec::Setting(key) => {
                self.declares(Capability::Config) && grants.any(|grant| grant.config.contains(&key))
            }
            RequestSpec::Tool(id) => self.declares(Capability::Tools) && grants.any(|grant| grant.tools.contains(&id)),
            RequestSpec::ContextKey(key) => {
                self.declares(Capability::Context) && grants.any(|grant| grant.context.contains(&key))
            }
            RequestSpec::KeyValue => self.declares(Capability::Keyvalue) && grants.any(|grant| grant.has_keyvalue),
            RequestSpec::Ask => self.declares(Capability::Ask) && grants.any(|grant| grant.has_ask),
            RequestSpec::Blackboard(writes) => {
                let first_rule = grants.find_map(|grant| grant.blackboard);
                self.declares(Capability::Blackboard) && first_rule.is_some_and(|is_writable| is_writable || !writes)
            }
        }
    }
}

/// Returns whether an HTTP rule allows a request.
fn allows_http(rule: &HttpSpec, request: &HttpRequestSpec) -> bool {
    let (granted_host, granted_scheme, granted_port, granted_path, is_method_granted) = *rule;
    let (host, scheme, port, path, method) = *request;
    let (granted_path, path) = (URL_PATHS[granted_path], URL_PATHS[path]);
    let is_below = granted_path == "/" || path == granted_path || path.starts_with(&format!("{granted_path}/"));
    (granted_host, granted_scheme, granted_port) == (host, scheme, port) && is_below && is_method_granted[method]
}

/// A random request. Each `usize` is an index in one of the constant arrays, and each `bool` is `true` for writing.
#[derive(Clone, Copy, Debug)]
enum RequestSpec {
    Http(HttpRequestSpec),
    File(usize, bool),
    Secret(usize),
    Variable(usize),
    Setting(usize),
    KeyValue,
    Clock,
    Random,
    Tool(usize),
    ContextKey(usize),
    Blackboard(bool),
    Ask,
}

fn access_mode(writes: bool) -> AccessMode {
    if writes {
        AccessMode::ReadWrite
    } else {
        AccessMode::Read
    }
}

impl RequestSpec {
    /// Calls `check` with the request as an [`AccessRequest`].
    fn check_with<T>(self, check: impl FnOnce(&AccessRequest<'_>) -> T) -> T {
        match self {
            Self::Http((host, scheme, port, path, method)) => {
                let authority = format!("{}:{}", HOSTS[host], PORTS[port]);
                let target = RequestTarget::new(METHODS[method], SCHEMES[scheme], &authority, URL_PATHS[path]);
                check(&AccessRequest::Http(&target.unwrap()))
            }
            Self::File(file, writes) => check(&AccessRequest::File(FILES[file], access_mode(writes))),
            Self::Secret(name) => check(&AccessRequest::Secret(NAMES[name])),
            Self::Variable(name) => check(&AccessRequest::Variable(NAMES[name])),
            Self::Setting(key) => check(&AccessRequest::Setting(NAMES[key])),
            Self::KeyValue => check(&AccessRequest::KeyValue),
            Self::Clock => check(&AccessRequest::Clock),
            Self::Random => check(&AccessRequest::Random),
            Self::Tool(id) => check(&AccessRequest::Tool(NAMES[id])),
            Self::ContextKey(key) => check(&AccessRequest::ContextKey(NAMES[key])),
            Self::Blackboard(writes) => check(&AccessRequest::Blackboard(access_mode(writes))),
            Self::Ask => check(&AccessRequest::Ask),
        }
    }
}

fn http_spec() -> impl Strategy<Value = HttpSpec> {
    let methods = prop_oneof![Just([true, false]), Just([false, true]), Just([true, true])];
    (0..2_usize, 0..2_usize, 0..2_usize, 0..3_usize, methods)
}

fn grant_spec() -> impl Strategy<Value = GrantSpec> {
    let names = || prop::collection::btree_set(0..2_usize, 0..3);
    let secret = (0..2_usize, any::<bool>(), prop::option::of(0..3_usize))
        .prop_map(|(name, is_sent, variable)| (name, is_sent || variable.is_none(), variable));
    (
        (
            prop::bool::weighted(0.9),
            prop_oneof![
                Just(VersionSpec::Tested),
                Just(VersionSpec::Other),
                Just(VersionSpec::Any)
            ],
        ),
        prop::collection::vec(http_spec(), 0..4),
        prop::collection::btree_map(0..4_usize, any::<bool>(), 0..4),
        names(),
        prop::collection::vec(secret, 0..3),
        [names(), names(), names()],
        [any::<bool>(), any::<bool>()],
        prop::option::of(any::<bool>()),
        [prop::option::of(0..9_u64), prop::option::of(0..9_u64)],
    )
        .prop_map(
            |(
                (is_for_plugin, version),
                http,
                files,
                env,
                secrets,
                [config, tools, context],
                [has_keyvalue, has_ask],
                blackboard,
                [frozen_clock, frozen_random],
            )| GrantSpec {
                is_for_plugin,
                version,
                http,
                files,
                env,
                secrets,
                config,
                tools,
                context,
                has_keyvalue,
                has_ask,
                blackboard,
                frozen_clock,
                frozen_random,
            },
        )
}

fn plugin_spec() -> impl Strategy<Value = PluginSpec> {
    (
        prop::collection::btree_set(0..IMPORTS.len(), 0..=IMPORTS.len()),
        prop::collection::vec(grant_spec(), 0..4),
        prop::option::weighted(0.2, 0..DIRECTORIES.len()),
        prop::bool::weighted(0.05),
    )
        .prop_map(|(imports, grants, missing_directory, lacks_secret)| PluginSpec {
            imports,
            grants,
            missing_directory,
            lacks_secret,
        })
}

fn request_spec() -> impl Strategy<Value = RequestSpec> {
    let name = || 0..NAMES.len();
    prop_oneof![
        3 => (0..3_usize, 0..2_usize, 0..2_usize, 0..4_usize, 0..2_usize).prop_map(RequestSpec::Http),
        3 => (0..FILES.len(), any::<bool>()).prop_map(|(file, writes)| RequestSpec::File(file, writes)),
        1 => name().prop_map(RequestSpec::Secret),
        1 => name().prop_map(RequestSpec::Variable),
        1 => name().prop_map(RequestSpec::Setting),
        1 => Just(RequestSpec::KeyValue),
        1 => Just(RequestSpec::Clock),
        1 => Just(RequestSpec::Random),
        1 => name().prop_map(RequestSpec::Tool),
        1 => name().prop_map(RequestSpec::ContextKey),
        1 => any::<bool>().prop_map(RequestSpec::Blackboard),
        1 => Just(RequestSpec::Ask),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 4_096, failure_persistence: None, ..ProptestConfig::default() })]

    /// Each decision follows from the documented rules. The explanation has the same decision, and describes the rule that allows
    /// the access.
    #[test]
    fn decision_and_explanation_follow_the_documented_rules(
        plugin in plugin_spec(),
        requests in prop::collection::vec(request_spec(), 8),
    ) {
        let rights = plugin.rights();
        for request in requests {
            let (decision, explanation) = request.check_with(|access| (decide(&rights, access), Explanation::new(&rights, access)));
            prop_assert_eq!(decision.is_allowed(), plugin.allows(&request), "{:?}: {:?}", request, decision);
            prop_assert_eq!(&explanation.decision, &decision);
            match decision {
                Decision::Allowed { rule } => prop_assert_eq!(rule.is_some(), explanation.rule.is_some(), "{:?}", request),
                Decision::Denied(Denial::NearestRule { rule, .. }) => prop_assert!(rule >= 1),
                Decision::Denied(_) => prop_assert_eq!(&explanation.rule, &None),
            }
        }
    }

    /// The accessors of [`EffectiveRights`] return a value exactly if the decision allows the access.
    #[test]
    fn accessors_follow_the_decision(plugin in plugin_spec(), requests in prop::collection::vec(request_spec(), 8)) {
        let rights = plugin.rights();
        for request in requests {
            let is_allowed = request.check_with(|access| decide(&rights, access)).is_allowed();
            let has_access = match request {
                RequestSpec::Http(_) => request.check_with(|access| match access {
                    AccessRequest::Http(target) => rights.http_rule(target).is_ok(),
                    _ => false,
                }),
                RequestSpec::Secret(name) => rights.has_secret(NAMES[name]),
                RequestSpec::Variable(name) => rights.has_variable(NAMES[name]),
                RequestSpec::Setting(key) => rights.setting(NAMES[key]).is_some(),
                RequestSpec::Clock => rights.clock().is_some(),
                RequestSpec::Random => rights.random().is_some(),
                // For these requests, `EffectiveRights` has no accessor that takes a single request.
                RequestSpec::File(..)
                | RequestSpec::KeyValue
                | RequestSpec::Tool(_)
                | RequestSpec::ContextKey(_)
                | RequestSpec::Blackboard(_)
                | RequestSpec::Ask => is_allowed,
            };
            prop_assert_eq!(has_access, is_allowed, "{:?}", request);
        }
        if let Some(clock) = rights.clock() {
            let frozen_clock = plugin.applicable_grants().find_map(|grant| grant.frozen_clock);
            prop_assert_eq!(clock, frozen_clock.map_or(ClockRule::Real, ClockRule::Frozen));
        }
        if let Some(random) = rights.random() {
            let frozen_random = plugin.applicable_grants().find_map(|grant| grant.frozen_random);
            prop_assert_eq!(random, frozen_random.map_or(RandomRule::Real, RandomRule::Frozen));
        }
        for (index, guest) in DIRECTORIES.iter().enumerate() {
            let is_granted = rights.rules.files.iter().any(|rule| rule.guest == *guest);
            let is_blocked = plugin.missing_directory == Some(index) || plugin.lacks_secret;
            prop_assert_eq!(rights.directory_mode(guest).is_some(), is_granted && !is_blocked, "{}", index);
        }
    }
}
