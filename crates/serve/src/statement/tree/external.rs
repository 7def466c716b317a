//! Inputs in the place of tables: a name stands for them from the first walk on.

use datafusion::sql::sqlparser::ast::{Ident, ObjectName, ObjectNamePart, TableAlias};

use super::{Walk, Walker};
use crate::external::reference::ExternalReference;

impl Walker<'_> {
    /// Puts the name in the place of inputs that stands for them.
    pub(super) fn external(&mut self, name: &mut ObjectName, reference: ExternalReference) {
        let shown = reference.to_string();
        *name = ObjectName::from(vec![Ident::with_quote('"', &shown)]);
        if self.names.externals.iter().all(|(known, _)| *known != shown) {
            self.names.externals.push((shown, reference));
        }
    }

    /// Whether a name stands for inputs.
    pub(super) fn is_external(&self, name: &ObjectName) -> bool {
        let [ObjectNamePart::Identifier(ident)] = &name.0[..] else { return false };
        self.names.externals.iter().any(|(known, _)| *known == ident.value)
    }

    /// Names the table of inputs after the first, as a load would, so that its columns can be called by it.
    pub(super) fn name_inputs(
        &mut self,
        alias: &mut Option<TableAlias>,
        reference: &ExternalReference,
    ) {
        if alias.is_some() || self.walk != Walk::Look {
            return;
        }
        let name = reference.inputs.first().map(|input| stem(input)).unwrap_or_default();
        if !name.is_empty() {
            let name = Ident::with_quote('"', name);
            *alias = Some(TableAlias { explicit: true, name, columns: Vec::new(), at: None });
        }
    }
}

/// The name of a file without folders and endings; nothing for a pattern.
fn stem(input: &str) -> &str {
    let name = input.rsplit(['/', '!']).next().unwrap_or(input);
    let stem = name.split('.').next().unwrap_or(name);
    if stem.contains(['*', '?', '[', '{']) { "" } else { stem }
}
