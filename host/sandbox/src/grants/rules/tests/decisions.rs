//! Compares decisions, explanations and the accessors of [`EffectiveRights`] with a second, naive implementation of the rules,
//! over thousands of random grants and requests of every kind.

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

/// An import for each capability, which declares it.
const IMPORTS: [(&str, Capability); 10] = [
    ("wasi:http/outgoing-handler", Capability::Http),
    ("wasi:filesystem/preopens", Capability::Files),
    ("wasi:cli/environment", Capability::Env),
    ("wasi:config/store", Capability::Config),
    ("wasi:keyvalue/store", Capability::Keyvalue),
    ("toolwit:plugin/tools", Capability::Tools),
    ("toolwit:plugin/context", Capability::Context),
    ("toolwit:plugin/blackboard", Capability::Blackboard),
    ("wasi:clocks/wall-clock", Capability::Clock),
    ("wasi:random/random", Capability::Random),
];

/// A rule for HTTP requests: indices of host, scheme, port and path, and whether each method is allowed.
type HttpSpec = (usize, usize, usize, usize, [bool; 2]);

/// The component to which a grant applies: the one of the test, a different one, or any.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Version {
    Same,
    Other,
    Any,
}

/// A random grant. Numbers are indices, except those of `frozen`.
#[derive(Clone, Debug)]
struct GrantSpec {
    is_for_plugin: bool,
    version: Version,
    http: Vec<HttpSpec>,
    /// Whether each granted directory is writable.
    files: BTreeMap<usize, bool>,
    env: BTreeSet<usize>,
    /// Name, whether it is sent with requests, and the variable that exposes it.
    secrets: Vec<(usize, bool, Option<usize>)>,
    /// Settings, tools, and keys of the context.
    names: [BTreeSet<usize>; 3],
    keyvalue: bool,
    /// Whether the granted blackboard is writable.
    blackboard: Option<bool>,
    /// The frozen time, and the seed of the random bytes.
    frozen: [Option<u64>; 2],
}

impl GrantSpec {
    fn applies(&self) -> bool {
        self.is_for_plugin && self.version != Version::Other
    }

    fn config(&self) -> &BTreeSet<usize> {
        &self.names[0]
    }

    fn to_toml(&self) -> String {
        let plugin = if self.is_for_plugin { "p" } else { "q" };
        let version = match self.version {
            Version::Same => format!("digest = \"sha256:{DIGEST}\""),
            Version::Other => format!("digest = \"sha256:{}\"", DIGEST.replace('0', "1")),
            Version::Any => "any-version = true".to_owned(),
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
            .config()
            .iter()
            .map(|index| format!("{} = \"v\"", NAMES[*index]))
            .collect();
        text += &format!("config = {{ {} }}\n", settings.join(", "));
        text += &list("tools", quoted(&self.names[1]));
        text += &list("context", quoted(&self.names[2]));
        if self.keyvalue {
            text += "keyvalue = { quota = \"1KiB\" }\n";
        }
        if let Some(is_writable) = self.blackboard {
            text += if is_writable {
                "blackboard = \"read-write\"\n"
            } else {
                "blackboard = \"read\"\n"
            };
        }
        for (key, frozen) in ["clock", "random"].iter().zip(self.frozen) {
            if let Some(number) = frozen {
                text += &format!("{key} = {{ frozen = {number} }}\n");
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

fn secret_toml((name, is_sent, variable): &(usize, bool, Option<usize>)) -> String {
    let mut fields = vec![format!("name = \"{}\"", NAMES[*name])];
    if *is_sent {
        fields.push("host = \"a.example\", bearer = true".to_owned());
    }
    if let Some(variable) = variable {
        fields.push(format!("expose = true, variable = \"{}\"", NAMES[*variable]));
    }
    format!("{{ {} }}", fields.join(", "))
}

/// A random plugin with its declared imports and all grants. Numbers are indices.
#[derive(Clone, Debug)]
struct Case {
    declared: BTreeSet<usize>,
    grants: Vec<GrantSpec>,
    /// A directory that does not exist.
    missing_directory: Option<usize>,
    /// Whether a granted secret is missing.
    lacks_secret: bool,
}

impl Case {
    fn declares(&self, capability: Capability) -> bool {
        self.declared.iter().any(|index| IMPORTS[*index].1 == capability)
    }

    fn applicable(&self) -> impl Iterator<Item = &GrantSpec> {
        self.grants.iter().filter(|grant| grant.applies())
    }

    fn rights(&self) -> EffectiveRights {
        let text: String = self.grants.iter().map(GrantSpec::to_toml).collect();
        let granted = parse_grants(&format!("version = 1\n{text}")).unwrap();
        let declared = DeclaredCapabilities::from_imports(self.declared.iter().map(|index| IMPORTS[*index].0));
        let mut rights = EffectiveRights::new(&declared, &granted, "p", DIGEST);
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
            let granted = parse_grant_with("secrets = [{ name = \"gone\", host = \"a.example\", bearer = true }]");
            rights.missing.secrets = granted.unwrap().grants.remove(0).rules.secrets;
        }
        rights
    }

    /// Decides according to the documentation of the rules, without the code of the rules.
    fn allows(&self, request: &Request) -> bool {
        if self.lacks_secret {
            return false;
        }
        let mut rules = self.applicable();
        match *request {
            Request::Clock => self.declares(Capability::Clock),
            Request::Random => self.declares(Capability::Random),
            Request::Http(request) => {
                self.declares(Capability::Http)
                    && rules.any(|grant| grant.http.iter().any(|rule| includes(rule, &request)))
            }
            Request::File(file, writes) => {
                // Of two rules for a directory, the first one applies.
                let mut directories = BTreeMap::new();
                for (index, is_writable) in rules.flat_map(|grant| &grant.files) {
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
            Request::Secret(name) => rules.any(|grant| {
                let is_usable = |(granted, is_sent, variable): &(usize, bool, Option<usize>)| {
                    *granted == name
                        && ((*is_sent && self.declares(Capability::Http))
                            || (variable.is_some() && self.declares(Capability::Env)))
                };
                grant.secrets.iter().any(is_usable)
            }),
            Request::Variable(name) => {
                self.declares(Capability::Env)
                    && rules.any(|grant| {
                        let is_exposed = grant.secrets.iter().any(|(_, _, variable)| *variable == Some(name));
                        grant.env.contains(&name) || is_exposed
                    })
            }
            Request::Setting(key) => {
                self.declares(Capability::Config) && rules.any(|grant| grant.config().contains(&key))
            }
            Request::Tool(id) => self.declares(Capability::Tools) && rules.any(|grant| grant.names[1].contains(&id)),
            Request::ContextKey(key) => {
                self.declares(Capability::Context) && rules.any(|grant| grant.names[2].contains(&key))
            }
            Request::KeyValue => self.declares(Capability::Keyvalue) && rules.any(|grant| grant.keyvalue),
            Request::Blackboard(writes) => {
                let first = rules.find_map(|grant| grant.blackboard);
                self.declares(Capability::Blackboard) && first.is_some_and(|is_writable| is_writable || !writes)
            }
        }
    }
}

/// Returns whether a rule includes a request, given by indices of host, scheme, port, path and method.
fn includes(rule: &HttpSpec, request: &(usize, usize, usize, usize, usize)) -> bool {
    let (host, scheme, port, path, methods) = rule;
    let (granted, requested) = (URL_PATHS[*path], URL_PATHS[request.3]);
    let is_below = granted == "/" || requested == granted || requested.starts_with(&format!("{granted}/"));
    (*host, *scheme, *port) == (request.0, request.1, request.2) && is_below && methods[request.4]
}

/// A random request. Numbers are indices, and a flag is `true` for writing.
#[derive(Clone, Copy, Debug)]
enum Request {
    Http((usize, usize, usize, usize, usize)),
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
}

fn access_mode(is_writable: bool) -> AccessMode {
    if is_writable {
        AccessMode::ReadWrite
    } else {
        AccessMode::Read
    }
}

impl Request {
    /// Converts the request, and passes it to a check.
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
            prop_oneof![Just(Version::Same), Just(Version::Other), Just(Version::Any)],
        ),
        prop::collection::vec(http_spec(), 0..4),
        prop::collection::btree_map(0..4_usize, any::<bool>(), 0..4),
        names(),
        prop::collection::vec(secret, 0..3),
        [names(), names(), names()],
        any::<bool>(),
        prop::option::of(any::<bool>()),
        [prop::option::of(0..9_u64), prop::option::of(0..9_u64)],
    )
        .prop_map(
            |((is_for_plugin, version), http, files, env, secrets, names, keyvalue, blackboard, frozen)| GrantSpec {
                is_for_plugin,
                version,
                http,
                files,
                env,
                secrets,
                names,
                keyvalue,
                blackboard,
                frozen,
            },
        )
}

fn case() -> impl Strategy<Value = Case> {
    (
        prop::collection::btree_set(0..IMPORTS.len(), 0..=IMPORTS.len()),
        prop::collection::vec(grant_spec(), 0..4),
        prop::option::weighted(0.2, 0..DIRECTORIES.len()),
        prop::bool::weighted(0.05),
    )
        .prop_map(|(declared, grants, missing_directory, lacks_secret)| Case {
            declared,
            grants,
            missing_directory,
            lacks_secret,
        })
}

fn request() -> impl Strategy<Value = Request> {
    let name = || 0..NAMES.len();
    prop_oneof![
        3 => (0..3_usize, 0..2_usize, 0..2_usize, 0..4_usize, 0..2_usize).prop_map(Request::Http),
        3 => (0..FILES.len(), any::<bool>()).prop_map(|(file, writes)| Request::File(file, writes)),
        1 => name().prop_map(Request::Secret),
        1 => name().prop_map(Request::Variable),
        1 => name().prop_map(Request::Setting),
        1 => Just(Request::KeyValue),
        1 => Just(Request::Clock),
        1 => Just(Request::Random),
        1 => name().prop_map(Request::Tool),
        1 => name().prop_map(Request::ContextKey),
        1 => any::<bool>().prop_map(Request::Blackboard),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 4_096, failure_persistence: None, ..ProptestConfig::default() })]

    /// Each decision follows from the documented rules. The explanation has the same decision, and describes the rule.
    #[test]
    fn decision_and_explanation_follow_the_documented_rules(
        case in case(),
        requests in prop::collection::vec(request(), 8),
    ) {
        let rights = case.rights();
        for request in requests {
            let (decision, explanation) = request.check_with(|access| (decide(&rights, access), Explanation::new(&rights, access)));
            prop_assert_eq!(decision.is_allowed(), case.allows(&request), "{:?}: {:?}", request, decision);
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
    fn accessors_follow_the_decision(case in case(), requests in prop::collection::vec(request(), 8)) {
        let rights = case.rights();
        for request in requests {
            let is_allowed = request.check_with(|access| decide(&rights, access)).is_allowed();
            let has_access = match request {
                Request::Http(_) => request.check_with(|access| match access {
                    AccessRequest::Http(target) => rights.http_rule(target).is_ok(),
                    _ => false,
                }),
                Request::Secret(name) => rights.has_secret(NAMES[name]),
                Request::Variable(name) => rights.has_variable(NAMES[name]),
                Request::Setting(key) => rights.setting(NAMES[key]).is_some(),
                Request::Clock => rights.clock().is_some(),
                Request::Random => rights.random().is_some(),
                _ => is_allowed,
            };
            prop_assert_eq!(has_access, is_allowed, "{:?}", request);
        }
        let frozen = |index: usize| case.applicable().find_map(|grant| grant.frozen[index]);
        if let Some(clock) = rights.clock() {
            prop_assert_eq!(clock, frozen(0).map_or(ClockRule::Real, ClockRule::Frozen));
        }
        if let Some(random) = rights.random() {
            prop_assert_eq!(random, frozen(1).map_or(RandomRule::Real, RandomRule::Frozen));
        }
        for (index, guest) in DIRECTORIES.iter().enumerate() {
            let is_granted = rights.rules.files.iter().any(|rule| rule.guest == *guest);
            let is_blocked = case.missing_directory == Some(index) || case.lacks_secret;
            prop_assert_eq!(rights.directory_mode(guest).is_some(), is_granted && !is_blocked, "{}", index);
        }
    }
}
