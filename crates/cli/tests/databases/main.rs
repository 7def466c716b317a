//! Loads into real servers of PostgreSQL and MariaDB, which the tests start on ports of their own, and end; and into SQL Server,
//! or a small server of its protocol.
//!
//! The packages of Debian are installed if they are missing, which needs root. Values are read back by the servers' own
//! clients.
#![allow(clippy::unwrap_used, clippy::print_stdout)]

mod choices;
mod dal;
#[path = "../it/drivers.rs"]
mod drivers;
mod kills;
mod lag;
mod lost;
mod mariadb;
mod out;
mod postgres;
mod rebuild;
mod rows;
mod servers;
mod sqlserver;
mod sqlserver_out;
mod tds_server;
