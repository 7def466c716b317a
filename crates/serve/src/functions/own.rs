//! Functions of ours, which other databases have and the engine has not.

use std::sync::Arc;

use datafusion::logical_expr::ScalarUDF;

use super::{boundaries, digest, extract, ordinals, type_name};

/// All of them.
pub(super) fn own_functions() -> Vec<Arc<ScalarUDF>> {
    [digest::MD5, digest::SHA256]
        .map(ScalarUDF::from)
        .into_iter()
        .chain([
            ScalarUDF::from(type_name::TypeName::new()),
            ScalarUDF::from(extract::RegexpExtract::new()),
            ScalarUDF::from(boundaries::DateDiff::new()),
            ScalarUDF::from(ordinals::Ordinals::new()),
        ])
        .map(Arc::new)
        .collect()
}
