//! Converting packages to records of the store, and back.

use std::path::Path;
use std::sync::Arc;

use super::tool_document::{quality_percent, tool_document, usage_text};
use crate::catalog::{Embedding, EmbeddingModel, IndexedTool, TermExtractor, Terms};
use crate::manifest::{Manifest, Tier};
use crate::package::{Package, PackageStatus, stored_path};
use crate::store::{MethodRecord, PackageRecord, ToolRecord};
use toolwit_core::ToolDefinition;
use toolwit_sandbox::{CachedInspection, EntityType, Inspection, Plugin, Runtime};

/// Creates the record of a package, without its stamp, its content hash and the reason why it is broken.
pub(crate) fn package_record(
    name: &str,
    path: &Path,
    inspection: &Inspection,
    manifest: Option<&Manifest>,
    terms: &mut TermExtractor,
) -> PackageRecord {
    let tier = manifest.map(Manifest::tier).unwrap_or_default();
    let declared_quality = manifest.and_then(|manifest| manifest.ranking.quality);
    let tools = inspection.tools.iter().map(|tool| {
        let id = tool.id.as_str();
        ToolRecord {
            id: id.to_owned(),
            name: tool.name().to_owned(),
            export: id.strip_prefix(name).unwrap_or(id).trim_start_matches('/').to_owned(),
            description: tool.description.clone(),
            quality_percent: quality_percent(tool, tier, declared_quality),
            terms: terms.extract(&tool_document(tool, manifest)).text().to_owned(),
        }
    });
    let tools: Vec<_> = tools.collect();
    let tier = match tier {
        Tier::Minimal => "minimal",
        Tier::Rich => "rich",
    };
    PackageRecord {
        path: stored_path(path),
        name: name.to_owned(),
        digest: inspection.digest.clone(),
        version: manifest.and_then(|manifest| manifest.version.clone()),
        category: manifest.and_then(|manifest| manifest.category.clone()),
        tier: tier.to_owned(),
        inspection: inspection.to_cache_text(),
        manifest: manifest.and_then(|manifest| serde_json::to_string(manifest).ok()),
        tools,
        methods: method_records(inspection, manifest, terms),
        ..PackageRecord::default()
    }
}

/// Creates the records of the methods of entities that a tool can return. Other methods cannot be called.
fn method_records(
    inspection: &Inspection,
    manifest: Option<&Manifest>,
    terms: &mut TermExtractor,
) -> Vec<MethodRecord> {
    let reachable_entities = inspection
        .entities
        .iter()
        .filter(|entity| !entity.entry_tools.is_empty());
    let methods = reachable_entities.flat_map(|entity| entity.methods.iter().map(move |method| (entity, method)));
    let record = |(entity, method): (&EntityType, &ToolDefinition)| MethodRecord {
        id: method.id.to_string(),
        name: method.name().to_owned(),
        description: method.description.clone(),
        terms: terms.extract(&tool_document(method, manifest)).text().to_owned(),
        entry_tools: entity.entry_tools.iter().map(ToString::to_string).collect(),
    };
    methods.map(record).collect()
}

/// Restores a package from its record, and returns it with its content hash. `None` if the package must be read again, for
/// example because the record is damaged. The inspection is parsed when it is first used.
pub(super) fn restore(
    runtime: &Arc<Runtime>,
    name: &str,
    path: &Path,
    record: &PackageRecord,
) -> Option<(Package, blake3::Hash)> {
    let content_hash = content_hash(record);
    // A package with an error is read again: the limits may have changed, or the store may now have its dynamic tools.
    if record.reason.is_some() || content_hash.to_string() != record.content_hash {
        return None;
    }
    let manifest: Option<Manifest> = match &record.manifest {
        Some(text) => Some(serde_json::from_str(text).ok()?),
        None => None,
    };
    let annotations = manifest.as_ref().map(Manifest::annotations).unwrap_or_default();
    let inspection = CachedInspection::new(record.digest.as_str(), record.tools.len(), record.inspection.as_str());
    // If the runtime does not support the WASI version of the component, the package is read again to report the error.
    if !inspection.is_loadable(runtime.wasi_versions()) {
        return None;
    }
    let plugin = Plugin::from_cached(runtime, name, path.to_owned(), inspection, &annotations);
    let package = Package {
        name: name.to_owned(),
        path: path.to_owned(),
        manifest: manifest.map(Arc::new),
        status: PackageStatus::Ready(plugin),
        discovery_failure: None,
    };
    Some((package, content_hash))
}

/// Converts the tools and methods of a record for the search index, with embeddings if there is an embedding model.
pub(crate) fn indexed_tools(
    record: &PackageRecord,
    manifest: Option<&Manifest>,
    model: Option<&Arc<dyn EmbeddingModel>>,
) -> Arc<[IndexedTool]> {
    let embed = |id: &str, name: &str, description: &str| {
        let usage_text = manifest
            .map(|manifest| usage_text(manifest, id, name))
            .unwrap_or_default();
        Embedding::of_tool(&**model?, name, description, &usage_text)
    };
    let popularity = manifest.and_then(|manifest| manifest.ranking.popularity).unwrap_or(0);
    let tools = record.tools.iter().map(|tool| {
        let terms = Terms::from_text(tool.terms.clone());
        let mut indexed = IndexedTool::new(tool.id.as_str(), tool.name.as_str(), terms);
        indexed.signals.quality = f32::from(tool.quality_percent) / 100.0;
        indexed.signals.popularity = popularity;
        indexed.embedding = embed(&tool.id, &tool.name, &tool.description);
        indexed
    });
    let methods = record.methods.iter().map(|method| {
        let terms = Terms::from_text(method.terms.clone());
        let mut indexed = IndexedTool::new(method.id.as_str(), method.name.as_str(), terms);
        indexed.entry_tools = method.entry_tools.iter().cloned().collect();
        indexed.embedding = embed(&method.id, &method.name, &method.description);
        indexed
    });
    tools.chain(methods).collect()
}

/// Hashes the content of a package: its name, inspection and manifest, but not its path and stamp.
pub(crate) fn content_hash(record: &PackageRecord) -> blake3::Hash {
    let manifest = record.manifest.as_deref().unwrap_or_default();
    let mut hasher = blake3::Hasher::new();
    for text in [&record.name, &record.inspection, manifest] {
        // The length separates the texts.
        hasher
            .update(&(text.len() as u64).to_le_bytes())
            .update(text.as_bytes());
    }
    hasher.finalize()
}
