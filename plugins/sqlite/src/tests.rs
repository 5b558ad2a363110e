#![allow(clippy::unwrap_used)]

use std::fs;
use std::path::PathBuf;
use std::time::{Duration, SystemTime};

use tempfile::TempDir;

use crate::{Change, Database, Rows, Value, execute};

/// A database of cakes in a directory of its own.
struct Shop {
    dir: TempDir,
    file: String,
}

impl Shop {
    fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("shop ?#%.db").to_str().unwrap().to_owned();
        execute(
            &file,
            "CREATE TABLE cake (name TEXT PRIMARY KEY, price REAL, icon BLOB)",
            &[],
            true,
        )
        .unwrap();
        let cakes = "INSERT INTO cake VALUES ('Torte', 4.5, x'00ff'), ('Strudel', NULL, NULL)";
        assert_eq!(
            execute(&file, cakes, &[], false),
            Ok(Change {
                rows: 2,
                last_row_id: 2
            })
        );
        Self { dir, file }
    }

    fn query(&self, sql: &str, parameters: &[Value]) -> Result<Rows, String> {
        Database::read(&self.file, |database| database.query(sql, parameters, 9))
    }

    fn count(&self) -> String {
        let rows = self.query("SELECT count(*) FROM cake", &[]).unwrap();
        rows.rows[0][0].clone().unwrap()
    }

    fn companion(&self, suffix: &str) -> PathBuf {
        PathBuf::from(format!("{}{suffix}", self.file))
    }
}

#[test]
fn rows_have_their_values_as_text() {
    let shop = Shop::new();
    let rows = shop.query(
        "SELECT * FROM cake WHERE price > ? OR price IS NULL ORDER BY name",
        &[Value::Integer(4)],
    );
    let rows = rows.unwrap();
    assert_eq!(rows.columns, ["name", "price", "icon"]);
    let text = |text: &str| Some(text.to_owned());
    assert_eq!(
        rows.rows,
        [
            vec![text("Strudel"), None, None],
            vec![text("Torte"), text("4.5"), text("x'00ff'")]
        ]
    );
    assert!(!rows.is_truncated);
    let first = Database::read(&shop.file, |database| database.query("SELECT name FROM cake", &[], 1)).unwrap();
    assert_eq!((first.rows.len(), first.is_truncated), (1, true));
    let long = shop.query("SELECT printf('%.*c', 20000, 'a')", &[]).unwrap();
    assert_eq!(long.rows[0][0].as_ref().unwrap().chars().count(), 10_001);
}

#[test]
fn the_schema_is_the_sql_that_created_it() {
    let shop = Shop::new();
    execute(
        &shop.file,
        "CREATE VIEW dear AS SELECT * FROM cake WHERE price > 4",
        &[],
        false,
    )
    .unwrap();
    let schema = Database::read(&shop.file, Database::schema).unwrap();
    let names: Vec<_> = schema.rows.iter().map(|row| row[1].as_deref().unwrap()).collect();
    assert_eq!(names, ["cake", "dear"], "without the automatic index");
    assert!(
        schema.rows[0][2]
            .as_deref()
            .unwrap()
            .starts_with("CREATE TABLE cake (name TEXT")
    );
}

#[test]
fn a_query_changes_nothing_and_reads_no_other_file() {
    let shop = Shop::new();
    let other = shop.dir.path().join("other.db");
    let other = other.to_str().unwrap();
    execute(other, "CREATE TABLE secret (x)", &[], true).unwrap();
    let copy = shop.dir.path().join("copy.db");
    for sql in [
        "DELETE FROM cake".to_owned(),
        "DROP TABLE cake".to_owned(),
        format!("ATTACH '{other}' AS other"),
        format!("VACUUM INTO '{}'", copy.display()),
        "BEGIN".to_owned(),
        "PRAGMA journal_mode = WAL".to_owned(),
        "PRAGMA user_version = 3".to_owned(),
        "CREATE TEMP TABLE t (x)".to_owned(),
    ] {
        let refused = shop.query(&sql, &[]).unwrap_err();
        assert!(refused.contains("may not do that"), "{sql}: {refused}");
    }
    for sql in ["SELECT load_extension('x')", "SELECT fts3_tokenizer('simple')"] {
        assert!(
            shop.query(sql, &[])
                .unwrap_err()
                .contains("not authorized to use function")
        );
        assert!(
            execute(&shop.file, sql, &[], false)
                .unwrap_err()
                .contains("not authorized to use function")
        );
    }
    assert!(!copy.exists());
    assert_eq!(shop.count(), "2");
    assert!(
        shop.query("SELECT 1; SELECT 2", &[])
            .unwrap_err()
            .contains("several statements")
    );
    assert_eq!(shop.query("PRAGMA table_info(cake)", &[]).unwrap().rows.len(), 3);
    assert_eq!(
        shop.query("PRAGMA user_version", &[]).unwrap().rows[0][0].as_deref(),
        Some("0")
    );
}

#[test]
fn statements_take_effect_together_or_not_at_all() {
    let shop = Shop::new();
    let both = "UPDATE cake SET price = 3 WHERE price IS NULL; INSERT INTO cake (name) VALUES ('Biscuit')";
    assert_eq!(execute(&shop.file, both, &[], false).unwrap().rows, 2);
    assert_eq!(shop.count(), "3");
    let broken = "DELETE FROM cake; INSERT INTO bread VALUES (1)";
    assert!(
        execute(&shop.file, broken, &[], false)
            .unwrap_err()
            .contains("no such table: bread")
    );
    assert_eq!(shop.count(), "3", "nothing was deleted");
    let new = shop.dir.path().join("new.db");
    execute(new.to_str().unwrap(), broken, &[], true).unwrap_err();
    assert!(!new.exists(), "a database without a table is not left");
    let parameters = [Value::Text("Roll'; --".to_owned())];
    let returning = "INSERT INTO cake (name) VALUES (?1) RETURNING name";
    assert_eq!(execute(&shop.file, returning, &parameters, false).unwrap().rows, 1);
    let two = "INSERT INTO cake (name) VALUES (?1); DELETE FROM cake";
    execute(&shop.file, two, &[Value::Text("Pie".to_owned())], false).unwrap_err();
    assert_eq!(shop.count(), "4");
    assert!(
        execute(&shop.file, " -- nothing", &[], false)
            .unwrap_err()
            .contains("no statement")
    );
}

#[test]
fn changes_stay_in_the_database() {
    let shop = Shop::new();
    for sql in [
        "ATTACH 'other.db' AS other",
        "COMMIT",
        "SAVEPOINT a",
        "PRAGMA journal_mode = WAL",
        "PRAGMA writable_schema = 1",
        "CREATE VIRTUAL TABLE t USING dbstat",
    ] {
        let refused = execute(&shop.file, sql, &[], false).unwrap_err();
        assert!(refused.contains("may not do that"), "{sql}: {refused}");
    }
    execute(
        &shop.file,
        "CREATE VIRTUAL TABLE words USING fts5(text); PRAGMA user_version = 3",
        &[],
        false,
    )
    .unwrap();
    let missing = shop.dir.path().join("missing.db");
    let missing = missing.to_str().unwrap();
    for error in [
        execute(missing, "CREATE TABLE t (x)", &[], false).unwrap_err(),
        Database::read(missing, Database::schema).unwrap_err(),
    ] {
        assert!(error.contains("in a granted directory"), "{error}");
    }
    let text = shop.dir.path().join("a.txt");
    fs::write(
        &text,
        "a text that is long enough to be read as the header of a database file, but is not one".repeat(9),
    )
    .unwrap();
    let error = Database::read(text.to_str().unwrap(), Database::schema).unwrap_err();
    assert!(error.contains("not a database"), "{error}");
}

#[test]
fn a_database_that_is_being_changed_is_neither_read_nor_changed() {
    let shop = Shop::new();
    let lock = shop.companion(".lock");
    fs::create_dir(&lock).unwrap();
    assert!(shop.query("SELECT 1", &[]).unwrap_err().contains("try again"));
    assert!(
        execute(&shop.file, "DELETE FROM cake", &[], false)
            .unwrap_err()
            .contains("try again")
    );
    let hour_ago = SystemTime::now() - Duration::from_secs(3600);
    fs::File::open(&lock).unwrap().set_modified(hour_ago).unwrap();
    assert_eq!(shop.count(), "2", "the lock of a call that was stopped");
    execute(&shop.file, "DELETE FROM cake WHERE price IS NULL", &[], false).unwrap();
    assert!(!lock.exists());
    assert_eq!(shop.count(), "1");

    fs::write(shop.companion("-journal"), "an unfinished change").unwrap();
    assert!(shop.query("SELECT 1", &[]).unwrap_err().contains("unfinished"));
    execute(&shop.file, "DELETE FROM cake", &[], false).unwrap();
    assert_eq!(shop.count(), "0");
    fs::write(shop.companion("-shm"), "").unwrap();
    assert!(
        execute(&shop.file, "DELETE FROM cake", &[], false)
            .unwrap_err()
            .contains("another program")
    );
}

#[test]
fn a_read_is_repeated_while_another_program_writes() {
    let shop = Shop::new();
    let reads = std::cell::Cell::new(0);
    let count = Database::read(&shop.file, |database| {
        reads.set(reads.get() + 1);
        if reads.get() == 1 {
            execute(&shop.file, "INSERT INTO cake (name) VALUES ('Roll')", &[], false)?;
        }
        database.query("SELECT count(*) FROM cake", &[], 1)
    });
    assert_eq!((count.unwrap().rows[0][0].as_deref(), reads.get()), (Some("3"), 2));
}

#[test]
fn the_newest_rows_of_a_log_are_read() {
    let shop = Shop::new();
    let writer = rusqlite::Connection::open(&shop.file).unwrap();
    writer.pragma_update(None, "journal_mode", "WAL").unwrap();
    writer.execute("INSERT INTO cake (name) VALUES ('Roll')", []).unwrap();
    assert!(fs::metadata(shop.companion("-wal")).unwrap().len() > 0);
    assert_eq!(shop.count(), "3");
    assert!(
        execute(&shop.file, "DELETE FROM cake", &[], false)
            .unwrap_err()
            .contains("another program")
    );
    drop(writer);
    execute(&shop.file, "DELETE FROM cake", &[], false).unwrap();
    assert_eq!(shop.count(), "0");
}
