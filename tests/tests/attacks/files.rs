//! Attacks on the file system.

use std::fs;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use serde_json::json;
use toolwit::grants::{AccessMode, AccessRequest, Decision, Denial, DirectoryRule, GrantRules};

use crate::host::Setup;

const READ: &str = r#"files = [{ host = "{dir}/data", guest = "/data" }]"#;
const WRITE: &str = r#"files = [{ host = "{dir}/data", guest = "/data", access = "read-write", quota = "200KiB" }]"#;

// attack: C1
#[tokio::test]
async fn no_path_leads_out_of_a_granted_directory() {
    let host = Setup::new().grant(READ).start().await;
    fs::create_dir(host.data().join("sub")).unwrap();
    fs::write(host.data().join("a.txt"), "inside").unwrap();
    fs::write(host.directory.path().join("x"), "outside").unwrap();
    for path in ["/data/a.txt", "/data//a.txt", "/data/./a.txt", "/data/sub/../a.txt"] {
        assert_eq!(host.value("read", json!({"path": path})).await, "inside", "{path}");
    }
    for path in [
        "/etc/passwd",
        "/data/../etc/passwd",
        "/data/../x",
        "/data/sub/../../x",
        "/data/a.txt/../../x",
        "/data/..",
        "/data/.",
        "..",
        ".",
        "",
        "\0",
        "/data/a.txt\0.png",
        "/proc/self/environ",
    ] {
        let message = host.failure("read", json!({"path": path})).await;
        assert!(
            !message.contains("outside") && !message.contains("root:"),
            "{path}: {message}"
        );
    }
    assert_eq!(
        host.value("entries", json!({"path": "/data"})).await,
        json!(["a.txt", "sub"])
    );
}

// attack: C1
#[tokio::test]
async fn without_a_grant_there_is_no_file_system() {
    let host = Setup::new().start().await;
    for path in ["/", "/data", ".", "/etc"] {
        host.failure("entries", json!({"path": path})).await;
    }
}

// attack: C2, attack: C3
#[cfg(unix)]
#[tokio::test]
async fn no_link_leads_out_of_a_granted_directory() {
    use std::os::unix::fs::symlink;
    let host = Setup::new().grant(WRITE).start().await;
    let data = host.data();
    fs::create_dir(data.join("dir")).unwrap();
    fs::write(data.join("a.txt"), "inside").unwrap();
    symlink("a.txt", data.join("good")).unwrap();
    symlink("/etc/passwd", data.join("absolute")).unwrap();
    symlink("../../../../../../etc/passwd", data.join("relative")).unwrap();
    symlink("absolute", data.join("chain")).unwrap();
    symlink("/etc", data.join("evil")).unwrap();
    symlink("nowhere", data.join("dangling")).unwrap();
    symlink("loop", data.join("loop")).unwrap();
    symlink("/proc/self/root", data.join("root")).unwrap();
    symlink("/proc/self/environ", data.join("environ")).unwrap();
    symlink("/dev/tty", data.join("tty")).unwrap();
    assert_eq!(host.value("read", json!({"path": "/data/good"})).await, "inside");
    for path in [
        "absolute",
        "relative",
        "chain",
        "evil/passwd",
        "evil/",
        "dangling",
        "loop",
        "root/etc/passwd",
        "environ",
        "tty",
        "dir/../evil/passwd",
    ] {
        let message = host.failure("read", json!({"path": format!("/data/{path}")})).await;
        assert!(!message.contains("root:"), "{path}: {message}");
    }
    for path in ["evil", "evil/", "root", "root/etc"] {
        host.failure("entries", json!({"path": format!("/data/{path}")})).await;
    }
    // Links that the guest creates itself do not lead outside either.
    host.failure(
        "change",
        json!({"how": "symlink", "path": "/etc/passwd", "other": "/data/own"}),
    )
    .await;
    let _ = host
        .call(
            "change",
            json!({"how": "symlink", "path": "../../etc/passwd", "other": "/data/up"}),
        )
        .await;
    host.failure("read", json!({"path": "/data/up"})).await;
    host.failure("write", json!({"path": "/data/evil/x", "text": "x"}))
        .await;
}

// attack: C4
#[cfg(unix)]
#[tokio::test(flavor = "multi_thread")]
async fn a_directory_swapped_for_a_link_does_not_expose_the_target() {
    use std::os::unix::fs::symlink;
    let host = Setup::new().grant(READ).start().await;
    let (data, outside) = (host.data(), host.directory.path().join("outside"));
    fs::create_dir(&outside).unwrap();
    fs::write(outside.join("a"), "outside").unwrap();
    fs::create_dir(data.join("dir")).unwrap();
    fs::write(data.join("dir/a"), "inside").unwrap();
    symlink(&outside, data.join("link")).unwrap();
    let stop = Arc::new(AtomicBool::new(false));
    let (stopped, directory) = (stop.clone(), data.clone());
    let swapping = std::thread::spawn(move || {
        while !stopped.load(Ordering::Relaxed) {
            let _ = fs::rename(directory.join("dir"), directory.join("moved"));
            let _ = fs::rename(directory.join("link"), directory.join("dir"));
            let _ = fs::rename(directory.join("dir"), directory.join("link"));
            let _ = fs::rename(directory.join("moved"), directory.join("dir"));
        }
    });
    let mut inside = 0;
    for _ in 0..300 {
        let result = host.call("read", json!({"path": "/data/dir/a"})).await.unwrap();
        assert!(!result.for_llm.contains("outside"), "{}", result.for_llm);
        inside += u32::from(!result.is_error());
    }
    stop.store(true, Ordering::Relaxed);
    swapping.join().unwrap();
    assert!(inside > 0, "the file was read at least once");
}

// attack: C5
#[tokio::test]
async fn a_read_grant_allows_no_changes() {
    let both = r#"files = [{ host = "{dir}/data", guest = "/data" }, { host = "{dir}/out", guest = "/out", access = "read-write" }]"#;
    let directory = tempfile::tempdir().unwrap();
    fs::create_dir(directory.path().join("out")).unwrap();
    let host = Setup::new().grant(both).directory(directory).start().await;
    let file = host.data().join("a.txt");
    fs::write(&file, "inside").unwrap();
    let before = fs::metadata(&file).unwrap().modified().unwrap();
    fs::write(host.directory.path().join("out/b"), "b").unwrap();
    for how in ["truncate", "append", "unlink", "touch", "grow"] {
        host.failure("change", json!({"how": how, "path": "/data/a.txt", "other": ""}))
            .await;
    }
    for (how, path, other) in [
        ("mkdir", "/data/new", ""),
        ("rename", "/data/a.txt", "/data/b.txt"),
        ("rename", "/data/a.txt", "/out/a.txt"),
        ("rename", "/out/b", "/data/b"),
        ("link", "/data/a.txt", "/data/c"),
        ("link", "/out/b", "/data/b"),
        ("link", "/data/a.txt", "/out/a.txt"),
        ("symlink", "a.txt", "/data/link"),
    ] {
        host.failure("change", json!({"how": how, "path": path, "other": other}))
            .await;
    }
    host.failure("write", json!({"path": "/data/new.txt", "text": "x"}))
        .await;
    assert_eq!(fs::read_to_string(&file).unwrap(), "inside");
    assert_eq!(fs::metadata(&file).unwrap().modified().unwrap(), before);
    assert_eq!(fs::read_dir(host.data()).unwrap().count(), 1);
    // The same guest can do the same in a directory that it may write to.
    for (how, other) in [
        ("append", ""),
        ("touch", ""),
        ("truncate", ""),
        ("link", "/out/c"),
        ("rename", "/out/d"),
    ] {
        host.value("change", json!({"how": how, "path": "/out/b", "other": other}))
            .await;
    }
    host.value("change", json!({"how": "unlink", "path": "/out/d", "other": ""}))
        .await;
}

// attack: C6
#[tokio::test]
async fn a_neighbour_of_a_granted_directory_is_not_granted() {
    let host = Setup::new().grant(READ).start().await;
    fs::create_dir(host.directory.path().join("data-secret")).unwrap();
    fs::write(host.directory.path().join("data-secret/a"), "secret").unwrap();
    fs::write(host.data().join("a"), "inside").unwrap();
    assert_eq!(host.value("read", json!({"path": "/data/a"})).await, "inside");
    for path in ["/data-secret/a", "/DATA/a", "/data/../data-secret/a"] {
        host.failure("read", json!({"path": path})).await;
    }
}

// attack: C7
#[cfg(unix)]
#[tokio::test]
async fn directory_that_cannot_be_granted_is_denied_with_the_reason() {
    let refused = |rule: &str| {
        let rule = format!("files = [{{ host = \"{rule}\", guest = \"/data\" }}]");
        async move {
            let host = Setup::new().grant(&rule).start().await;
            let read = host.call("read", json!({"path": "/data/a"})).await.unwrap();
            let directory = host.directory.path().to_str().unwrap().to_owned();
            assert!(
                read.is_error() && !read.for_llm.contains(&directory),
                "the model reads it: {}",
                read.for_llm
            );
            read.denied[0].reason.clone()
        }
    };
    let missing = refused("{dir}/nowhere").await;
    assert!(missing.contains("line ") && missing.contains("nowhere"), "{missing}");
    assert!(refused("{dir}/own/grants.toml").await.contains("not a directory"));
    assert!(
        refused("{dir}/own").await.contains("belongs to the host"),
        "the grants are in it"
    );
    assert!(refused("{dir}").await.contains("belongs to the host"));
    let code = std::path::Path::new(env!("CARGO_TARGET_TMPDIR")).join("code");
    fs::create_dir_all(&code).unwrap();
    assert!(
        refused(code.to_str().unwrap()).await.contains("belongs to the host"),
        "machine code is in it"
    );
    for invalid in ["/", "data", "/srv/.."] {
        let rule = format!("files = [{{ host = \"{invalid}\", guest = \"/data\" }}]");
        let error = Setup::new().grant(&rule).try_start().await.err().unwrap();
        assert!(error.message.contains("line 5, column "), "{error}");
    }
    // A link is resolved once, when the grants are read. A later change of its target has no effect.
    let directory = tempfile::tempdir().unwrap();
    fs::create_dir(directory.path().join("data")).unwrap();
    fs::write(directory.path().join("data/a"), "inside").unwrap();
    std::os::unix::fs::symlink(directory.path().join("data"), directory.path().join("link")).unwrap();
    let link = r#"files = [{ host = "{dir}/link", guest = "/data" }]"#;
    let host = Setup::new().grant(link).directory(directory).start().await;
    fs::remove_file(host.directory.path().join("link")).unwrap();
    std::os::unix::fs::symlink("/etc", host.directory.path().join("link")).unwrap();
    assert_eq!(host.value("read", json!({"path": "/data/a"})).await, "inside");
    host.failure("read", json!({"path": "/data/passwd"})).await;
}

// attack: C7
#[tokio::test]
async fn rule_that_cannot_be_enforced_affects_nothing_else() {
    let good = format!("version = 1\n[[grant]]\nplugin = \"probe\"\nany-version = true\n{READ}\n");
    let bad = READ.replace("{dir}/data", "{dir}").replace("/data\" }]", "/all\" }]");
    let bad = format!("{bad}\nconfig = {{ colour = \"red\" }}");
    let host = Setup::new().file(&good).grant_to(&["keeper"], &bad).start().await;
    fs::write(host.data().join("a"), "inside").unwrap();
    assert_eq!(host.value("read", json!({"path": "/data/a"})).await, "inside");
    assert_eq!(host.value("settings", json!({})).await, json!([["colour", "red"]]));
    let registry = host.host.registry();
    let plugin = |name: &str| registry.plugins().find(|plugin| plugin.name() == name).unwrap().clone();
    let request = AccessRequest::File("/all/a", AccessMode::Read);
    let explained = plugin("keeper").explain(&request).await.unwrap();
    assert!(
        matches!(explained.decision, Decision::Denied(Denial::Unenforceable(_))),
        "{explained}"
    );
    let explained = plugin("keeper")
        .explain(&AccessRequest::Setting("colour"))
        .await
        .unwrap();
    assert!(explained.decision.is_allowed(), "{explained}");
    let request = AccessRequest::File("/data/a", AccessMode::Read);
    assert!(plugin("probe").explain(&request).await.unwrap().decision.is_allowed());

    let rules = |directory: &std::path::Path| GrantRules {
        files: vec![DirectoryRule::new(directory.to_str().unwrap(), "/x", AccessMode::Read, None).unwrap()],
        ..GrantRules::default()
    };
    let probe = plugin("probe");
    assert!(probe.check_grant(&rules(&host.data())).await.is_ok());
    let refused = probe.check_grant(&rules(host.directory.path())).await.unwrap_err();
    assert!(refused.message.contains("belongs to the host"), "{refused}");
}

#[tokio::test]
async fn paths_of_open_directories_do_not_grow_without_limit() {
    let host = Setup::new().grant(READ).start().await;
    let name = "s".repeat(255);
    std::os::unix::fs::symlink(".", host.data().join(&name)).unwrap();
    let descend = |next: String| json!({"how": "descend", "path": "/data", "other": next});
    assert_eq!(host.value("change", descend(name.clone())).await, "done");
    let error = host.failure("change", descend(vec![name; 15].join("/"))).await;
    assert!(
        error.contains("ENAMETOOLONG") || error.to_lowercase().contains("name"),
        "{error}"
    );
}

// attack: C1
#[tokio::test]
async fn denied_files_are_listed_for_the_operator_and_look_missing_to_the_guest() {
    let host = Setup::new().grant(READ).start().await;
    fs::write(host.data().join("a"), "inside").unwrap();
    let read = |path: &'static str| host.call("read", json!({"path": path}));
    let allowed = read("/data/a").await.unwrap();
    assert!(allowed.denied.is_empty(), "{:?}", allowed.denied);
    let missing = read("/data/b").await.unwrap();
    assert!(
        missing.is_error() && missing.denied.is_empty(),
        "a missing file is not denied"
    );
    // A guest with a directory sees no other, so that its library does not ask the host for a path outside.
    let outside = read("/etc/passwd").await.unwrap();
    assert!(outside.is_error() && outside.denied.is_empty(), "{outside:?}");
    let bare = Setup::new().start().await;
    let denied = bare.call("read", json!({"path": "/etc/passwd"})).await.unwrap();
    assert!(denied.is_error());
    assert_eq!(denied.for_llm, missing.for_llm, "both look the same");
    assert!(!denied.for_llm.contains("grant"));
    let [access] = denied.denied.as_slice() else {
        panic!("{:?}", denied.denied)
    };
    assert_eq!(
        (access.plugin.as_str(), access.access.as_str()),
        ("probe", "read `/etc/passwd`")
    );
    let grant = access.missing_grant.as_ref().unwrap();
    assert_eq!((grant.key.as_str(), grant.value.as_str()), ("files", "read /etc"));
    let device = bare.call("read", json!({"path": "/dev/urandom"})).await.unwrap();
    assert!(
        device.is_error() && device.denied.is_empty(),
        "not a grant that anyone should give"
    );
    let written = host
        .call("write", json!({"path": "/data/new", "text": "x"}))
        .await
        .unwrap();
    let access = &written.denied[0];
    assert_eq!(
        (access.access.as_str(), access.reason.as_str()),
        ("write to `/data/new`", "rule 1 allows reading only")
    );
    let climbed = read("/data/../etc/passwd").await.unwrap();
    assert_eq!(climbed.denied[0].access, "read `/etc/passwd`");
}

// attack: B18
#[tokio::test]
async fn files_of_a_plugin_are_limited_by_its_quota() {
    let host = Setup::new().grant(WRITE).start().await;
    host.value("write", json!({"path": "/data/small", "text": "fits"}))
        .await;
    let written = host
        .value("fill", json!({"path": "/data/large", "bytes": 10_u64 << 30}))
        .await;
    let on_disk = fs::metadata(host.data().join("large")).unwrap().len();
    assert!(
        (100_000..=200 << 10).contains(&on_disk),
        "{written} written, {on_disk} on disk"
    );
    let full = host
        .failure("write", json!({"path": "/data/another", "text": "x".repeat(100_000)}))
        .await;
    assert!(full.contains("space"), "{full}");
    host.failure("change", json!({"how": "grow", "path": "/data/small", "other": ""}))
        .await;
    let mut created = 0;
    while created < 100 {
        let result = host
            .call(
                "change",
                json!({"how": "mkdir", "path": format!("/data/d{created}"), "other": ""}),
            )
            .await;
        if result.unwrap().is_error() {
            break;
        }
        created += 1;
    }
    assert!(created < 100, "directories count towards the quota");
    host.value("change", json!({"how": "unlink", "path": "/data/large", "other": ""}))
        .await;
    // The disk usage is measured again after a pause, which is longer on slow machines.
    let mut tries = 0;
    while host
        .call("write", json!({"path": "/data/again", "text": "fits again"}))
        .await
        .unwrap()
        .is_error()
    {
        tries += 1;
        assert!(tries < 10_000, "the space of a removed file is freed");
    }
}

// attack: C3
#[cfg(unix)]
#[tokio::test]
async fn a_pipe_in_a_granted_directory_is_not_opened() {
    let host = Setup::new().grant(WRITE).start().await;
    let pipe = host.data().join("pipe");
    let created = std::process::Command::new("mkfifo").arg(&pipe).status().unwrap();
    assert!(created.success());
    host.failure("read", json!({"path": "/data/pipe"})).await;
    host.failure("write", json!({"path": "/data/pipe", "text": "x"})).await;
}
