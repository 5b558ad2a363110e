//! Packages, tools and health, in SQLite.

use std::collections::{BTreeMap, HashMap};

use rusqlite::{Connection, OptionalExtension, Row, Transaction, TransactionBehavior, named_params, params};

use super::{SqliteStore, methods};
use crate::store::record::{CallRecord, HealthState, PackageRecord, ToolHealth, ToolKey, ToolRecord};
use crate::store::{Store, StoreError, StoredTool, ToolQuery};

impl Store for SqliteStore {
    fn packages(&self) -> Result<Vec<PackageRecord>, StoreError> {
        let connection = self.connection();
        let mut tools = tools_by_package(&connection)?;
        let mut methods = methods::by_package(&connection)?;
        let mut statement = connection.prepare_cached(
            "SELECT id, path, stamp, name, digest, version, category, tier, inspection, content, manifest, reason
             FROM packages ORDER BY path",
        )?;
        let rows = statement.query_map([], |row| {
            let id: i64 = row.get(0)?;
            Ok(PackageRecord {
                path: row.get(1)?,
                stamp: row.get(2)?,
                name: row.get(3)?,
                digest: row.get(4)?,
                version: row.get(5)?,
                category: row.get(6)?,
                tier: row.get(7)?,
                inspection: row.get(8)?,
                content_hash: row.get(9)?,
                manifest: row.get(10)?,
                reason: row.get(11)?,
                tools: tools.remove(&id).unwrap_or_default(),
                methods: methods.remove(&id).unwrap_or_default(),
            })
        })?;
        Ok(rows.collect::<Result<_, _>>()?)
    }

    fn update_packages(&self, changed: &[PackageRecord], deleted: &[String]) -> Result<(), StoreError> {
        let mut connection = self.connection();
        let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
        for path in deleted {
            transaction
                .prepare_cached("DELETE FROM packages WHERE path = ?1")?
                .execute([path])?;
        }
        for package in changed {
            put_package(&transaction, package)?;
        }
        super::dynamic_tools::delete_unused(&transaction)?;
        Ok(transaction.commit()?)
    }

    fn health(&self) -> Result<BTreeMap<ToolKey, ToolHealth>, StoreError> {
        let connection = self.connection();
        let mut statement = connection.prepare_cached(
            "SELECT digest, tools.id, import_health, execution_health, health_error, checked_ms, uses
             FROM tools JOIN packages ON package = packages.id WHERE checked_ms > 0 OR uses > 0",
        )?;
        let rows = statement.query_map([], |row| {
            let key = ToolKey::new(row.get::<_, String>(0)?, row.get::<_, String>(1)?);
            Ok((key, read_health(row, 2)?))
        })?;
        Ok(rows.collect::<Result<_, _>>()?)
    }

    fn tools(&self, query: &ToolQuery) -> Result<Vec<StoredTool>, StoreError> {
        super::tools::select(&self.connection(), query)
    }

    fn record_calls(&self, tool: &ToolKey, calls: &CallRecord) -> Result<(), StoreError> {
        let mut connection = self.connection();
        let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
        let health = transaction
            .query_row(
                "SELECT import_health, execution_health, health_error, checked_ms, uses
                 FROM tools JOIN packages ON package = packages.id WHERE tools.id = ?1 AND digest = ?2 LIMIT 1",
                [&tool.tool, &tool.digest],
                |row| read_health(row, 0),
            )
            .optional()?;
        let Some(mut health) = health else { return Ok(()) };
        health.record(calls);
        transaction.execute(
            "UPDATE tools SET import_health = ?2, execution_health = ?3, health_error = ?4, checked_ms = ?5, uses = ?6
             WHERE id = ?1 AND package IN (SELECT id FROM packages WHERE digest = ?7)",
            params![
                tool.tool,
                health_name(health.loading),
                health_name(health.execution),
                health.error,
                to_signed(health.checked_ms),
                to_signed(health.uses),
                tool.digest,
            ],
        )?;
        Ok(transaction.commit()?)
    }
}

/// Inserts a package, or replaces the stored package with the same path.
fn put_package(transaction: &Transaction<'_>, package: &PackageRecord) -> Result<(), StoreError> {
    let existing_row: Option<(i64, String)> = transaction
        .prepare_cached("SELECT id, digest FROM packages WHERE path = ?1")?
        .query_row([&package.path], |row| Ok((row.get(0)?, row.get(1)?)))
        .optional()?;
    match existing_row {
        None => insert_package(transaction, package),
        Some((id, digest)) if digest == package.digest => update_package(transaction, id, package),
        // Health belongs to the component's digest: a changed component starts without health.
        Some((id, _)) => {
            transaction
                .prepare_cached("DELETE FROM packages WHERE id = ?1")?
                .execute([id])?;
            insert_package(transaction, package)
        }
    }
}

fn insert_package(transaction: &Transaction<'_>, package: &PackageRecord) -> Result<(), StoreError> {
    let id = transaction
        .prepare_cached(
            "INSERT INTO packages (path, stamp, name, digest, version, category, tier, inspection, content, manifest, reason)
             VALUES (:path, :stamp, :name, :digest, :version, :category, :tier, :inspection, :content, :manifest, :reason)",
        )?
        .insert(named_params! {
            ":path": package.path, ":stamp": package.stamp, ":name": package.name, ":digest": package.digest,
            ":version": package.version, ":category": package.category, ":tier": package.tier,
            ":inspection": package.inspection, ":content": package.content_hash, ":manifest": package.manifest, ":reason": package.reason,
        })?;
    put_tools_and_methods(transaction, id, package)
}

/// Replaces a package whose component has the same digest. The health of its tools remains.
fn update_package(transaction: &Transaction<'_>, id: i64, package: &PackageRecord) -> Result<(), StoreError> {
    transaction
        .prepare_cached(
            "UPDATE packages SET stamp = :stamp, name = :name, version = :version, category = :category, tier = :tier,
                 inspection = :inspection, content = :content, manifest = :manifest, reason = :reason WHERE id = :id",
        )?
        .execute(named_params! {
            ":stamp": package.stamp, ":name": package.name, ":version": package.version, ":category": package.category,
            ":tier": package.tier, ":inspection": package.inspection, ":content": package.content_hash,
            ":manifest": package.manifest, ":reason": package.reason, ":id": id,
        })?;
    put_tools_and_methods(transaction, id, package)?;
    let exports = serde_json::to_string(&package.tools.iter().map(|tool| &tool.export).collect::<Vec<_>>());
    transaction
        .prepare_cached("DELETE FROM tools WHERE package = ?1 AND export NOT IN (SELECT value FROM json_each(?2))")?
        .execute(params![id, exports.unwrap_or_default()])?;
    Ok(())
}

/// Inserts or replaces the tools and the methods of a package. The health of a replaced tool remains.
fn put_tools_and_methods(
    transaction: &Transaction<'_>,
    package_id: i64,
    package: &PackageRecord,
) -> Result<(), StoreError> {
    let mut upsert = transaction.prepare_cached(
        "INSERT INTO tools (id, package, export, description, quality_percent, name, terms)
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7) ON CONFLICT (package, export)
         DO UPDATE SET id = ?1, description = ?4, quality_percent = ?5, name = ?6, terms = ?7",
    )?;
    for tool in &package.tools {
        upsert.execute(params![
            tool.id,
            package_id,
            tool.export,
            tool.description,
            tool.quality_percent,
            tool.name,
            tool.terms,
        ])?;
    }
    methods::put(transaction, package_id, &package.methods)
}

/// Reads the tools of all packages, by the id of the package's row.
fn tools_by_package(connection: &Connection) -> Result<HashMap<i64, Vec<ToolRecord>>, StoreError> {
    let mut statement = connection.prepare_cached(
        "SELECT package, id, export, description, quality_percent, name, terms FROM tools ORDER BY rowid",
    )?;
    let rows = statement.query_map([], |row| {
        let tool = ToolRecord {
            id: row.get(1)?,
            export: row.get(2)?,
            description: row.get(3)?,
            quality_percent: row.get(4)?,
            name: row.get(5)?,
            terms: row.get(6)?,
        };
        Ok((row.get::<_, i64>(0)?, tool))
    })?;
    let mut tools: HashMap<i64, Vec<ToolRecord>> = HashMap::new();
    for row in rows {
        let (package_id, tool) = row?;
        tools.entry(package_id).or_default().push(tool);
    }
    Ok(tools)
}

/// Reads the health of a tool from five consecutive columns of a row.
pub(super) fn read_health(row: &Row<'_>, first_column: usize) -> rusqlite::Result<ToolHealth> {
    Ok(ToolHealth {
        loading: health_state(&row.get::<_, String>(first_column)?),
        execution: health_state(&row.get::<_, String>(first_column + 1)?),
        error: row.get(first_column + 2)?,
        checked_ms: row.get::<_, i64>(first_column + 3)?.unsigned_abs(),
        uses: row.get::<_, i64>(first_column + 4)?.unsigned_abs(),
    })
}

fn health_name(state: HealthState) -> &'static str {
    match state {
        HealthState::Unknown => "unknown",
        HealthState::Healthy => "healthy",
        HealthState::Broken => "broken",
    }
}

fn health_state(name: &str) -> HealthState {
    match name {
        "healthy" => HealthState::Healthy,
        "broken" => HealthState::Broken,
        _ => HealthState::Unknown,
    }
}

/// Converts a number for SQLite, which has no unsigned integers. A number out of range becomes the greatest signed
/// integer.
fn to_signed(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}
