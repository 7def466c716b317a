//! `md5(text)` and `sha256(text)`: digests in lower-case hex, as in DuckDB; of bytes too.

use std::fmt::Write;

use datafusion::arrow::array::{Array, AsArray, StringBuilder};
use datafusion::arrow::datatypes::DataType;
use datafusion::error::Result;
use datafusion::logical_expr::{
    ColumnarValue, ScalarFunctionArgs, ScalarUDFImpl, Signature, TypeSignature, Volatility,
};
use md5::{Digest, Md5};
use sha2::Sha256;
use std::sync::{Arc, LazyLock};

/// A digest by its name.
#[derive(Debug, PartialEq, Eq, Hash)]
pub(super) struct Hex {
    name: &'static str,
    kind: Kind,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Kind {
    Md5,
    Sha256,
}

pub(super) const MD5: Hex = Hex { name: "md5", kind: Kind::Md5 };
pub(super) const SHA256: Hex = Hex { name: "sha256", kind: Kind::Sha256 };

impl Kind {
    fn push(self, bytes: &[u8], hex: &mut String) {
        let mut push = |digest: &[u8]| {
            hex.clear();
            for byte in digest {
                // Writing to a text cannot fail.
                let _ = write!(hex, "{byte:02x}");
            }
        };
        match self {
            Kind::Md5 => push(&Md5::digest(bytes)),
            Kind::Sha256 => push(&Sha256::digest(bytes)),
        }
    }
}

impl ScalarUDFImpl for Hex {
    fn name(&self) -> &str {
        self.name
    }

    fn signature(&self) -> &Signature {
        static SIGNATURE: LazyLock<Signature> = LazyLock::new(|| {
            let of = |data_type| TypeSignature::Exact(vec![data_type]);
            let either = vec![of(DataType::Utf8View), of(DataType::BinaryView)];
            Signature::one_of(either, Volatility::Immutable)
        });
        &SIGNATURE
    }

    fn return_type(&self, _: &[DataType]) -> Result<DataType> {
        Ok(DataType::Utf8)
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let arrays = ColumnarValue::values_to_arrays(&args.args)?;
        let values = &arrays[0];
        let mut made = StringBuilder::new();
        let mut hex = String::new();
        for row in 0..values.len() {
            if values.is_null(row) {
                made.append_null();
                continue;
            }
            let bytes = match values.data_type() {
                DataType::BinaryView => values.as_binary_view().value(row),
                _ => values.as_string_view().value(row).as_bytes(),
            };
            self.kind.push(bytes, &mut hex);
            made.append_value(&hex);
        }
        Ok(ColumnarValue::Array(Arc::new(made.finish())))
    }
}
