//! Toolwit runs tools for AI agents as sandboxed WebAssembly components.
