//! The protocol of SQL Server (MS-TDS 7.4), as far as a loader needs it: packets, login, statements, calls, bulk loads, answers.
//!
//! ```text
//!   Wire: packets over TCP or TLS  ->  Session: login, requests, tokens of answers  ->  values by TypeInfo
//! ```
//!
//! Bytes of a server are untrusted: a length that they give is checked against what there is, and no answer is kept in memory
//! beyond the value that is being read. See decision 0088 for why this is our own.

mod login;
mod request;
mod session;
mod tls;
mod types;
mod wire;

pub use login::{Encryption, Login};
pub use request::{Procedure, put_name, put_numbered_name, put_plp, put_text_value, put_utf16};
pub use session::{ColumnInfo, Counts, LEFT_OUT, ServerError, Session, Token};
pub use types::{TypeInfo, kind};
