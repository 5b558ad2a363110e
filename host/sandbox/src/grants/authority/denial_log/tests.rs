//! Tests of the record of denied accesses.

use super::*;
use crate::grants::{AddressClass, RequestTarget};
use crate::inspect::declared_capabilities::Capability;

#[test]
fn a_read_of_an_empty_environment_is_listed_only_if_the_guest_returned_an_error() {
    let log = || {
        let mut log = DenialLog::default();
        let denied = denied_environment("notes", &Denial::NoRule(Capability::Env));
        log.record(denied, DenialNotice::Silent, &Redactor::default());
        log
    };
    assert!(log().conclude(Ok(ToolResult::text("fine"))).unwrap().denied.is_empty());
    let failed = log().conclude(Ok(ToolResult::error("no API key"))).unwrap();
    assert_eq!(failed.denied[0].access, ENVIRONMENT_READ);
    for kind in [ErrorKind::Trap, ErrorKind::Memory, ErrorKind::Fuel] {
        let stopped = Error::new(kind, Phase::Execute, "stopped");
        assert!(log().conclude(Err(stopped)).unwrap_err().denied.is_empty(), "{kind}");
    }
}

// attack: J6
#[test]
fn a_reported_denial_tells_the_model_nothing_about_the_grants() {
    let target = RequestTarget::parse("https://evil.example/x").unwrap();
    let nearest = |allows: &str| Denial::NearestRule {
        rule: 1,
        allows: allows.to_owned(),
    };
    let address = Denial::Address {
        address: [10, 0, 0, 7].into(),
        class: AddressClass::Private,
    };
    for denial in [
        nearest("the host internal.corp.example"),
        nearest("port 8443"),
        nearest("paths below /v1/reports"),
        Denial::NoRule(Capability::Http),
        address,
    ] {
        let mut log = DenialLog::default();
        log.record_request("fetch", &AccessRequest::Http(&target), &denial, &Redactor::default());
        let error = log.conclude(Ok(ToolResult::error("failed"))).unwrap_err();
        let expected = "it may not send `GET https://evil.example/x`: it is not granted";
        assert_eq!((&*error.message, &error.suggestion), (expected, &None), "{denial}");
        assert_eq!(
            error.denied[0].reason,
            denial.to_string(),
            "the operator reads the reason"
        );
    }
    let mut log = DenialLog::default();
    let undeclared = Denial::NotDeclared(Capability::Http);
    log.record_request(
        "fetch",
        &AccessRequest::Http(&target),
        &undeclared,
        &Redactor::default(),
    );
    let error = log.conclude(Ok(ToolResult::error("failed"))).unwrap_err();
    assert!(error.message.ends_with("does not import HTTP requests"), "{error}");
}

#[test]
fn a_refused_call_lists_its_refusal_and_then_the_accesses_of_the_guest() {
    let access = |name: &str| DeniedAccess {
        access: name.to_owned(),
        ..denied_environment("notes", &Denial::NoRule(Capability::Env))
    };
    let refused = || Error::new(ErrorKind::Denied, Phase::Execute, "refused").with_denied(vec![access("be called")]);
    let listed = |log: DenialLog| {
        let error = log.conclude(Err(refused())).unwrap_err();
        error
            .denied
            .iter()
            .map(|denied| denied.access.clone())
            .collect::<Vec<_>>()
    };
    assert_eq!(listed(DenialLog::default()), ["be called"]);
    let mut log = DenialLog::default();
    log.record(access("open a file"), DenialNotice::Silent, &Redactor::default());
    assert_eq!(listed(log), ["be called", "open a file"]);
}

#[test]
fn a_python_traceback_hides_only_its_own_reads() {
    let listed_accesses = |paths: &[&str]| {
        let mut log = DenialLog::default();
        for path in paths {
            let request = AccessRequest::File(path, AccessMode::Read);
            let denial = Denial::NoRule(Capability::Files);
            log.record_request("notes", &request, &denial, &Redactor::default());
        }
        let denied = log.conclude(Ok(ToolResult::error("it failed"))).unwrap().denied;
        denied.into_iter().map(|denied| denied.access).collect::<Vec<_>>()
    };
    let mut traceback = vec!["/python", "/world", "/0", "/bundled", "/0/app.py", "/world/app.py"];
    assert!(listed_accesses(&traceback).is_empty());
    let library_reads: Vec<_> = (0..2 * DENIED_ACCESSES_MAX)
        .map(|index| format!("/python/lib/{index}/app.py"))
        .collect();
    traceback.extend(library_reads.iter().map(String::as_str));
    traceback.push("/notes/today.txt");
    assert_eq!(listed_accesses(&traceback), ["read `/notes/today.txt`"]);
    // The reads are ordinary if the guest did not read both `/python` and `/bundled`.
    assert_eq!(
        listed_accesses(&["/world/a.txt", "/0"]),
        ["read `/world/a.txt`", "read `/0`"]
    );
    assert_eq!(
        listed_accesses(&["/0/x", "/0/x", "/0/x"]),
        ["read `/0/x`"],
        "a path is listed once"
    );
}
