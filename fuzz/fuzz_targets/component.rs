//! A stranger's bytes as a component: what is known of it is kept and restored as the same, or it is refused.
#![no_main]

use toolwit::plugin::{Inspection, Origin};

libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    let origin = Origin { name: "fuzz", wit_beside: None };
    let Ok(inspection) = Inspection::of(data, origin) else { return };
    let restored = Inspection::restore(&inspection.keep(), "fuzz").expect("what was kept can be read");
    let names = |inspection: &Inspection| inspection.tools.iter().map(|tool| tool.id.to_string()).collect::<Vec<_>>();
    assert_eq!(names(&inspection), names(&restored));
});
