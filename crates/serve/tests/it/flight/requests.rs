//! Requests of Flight made of any bytes: tickets, commands, descriptors, actions, handles, batches, headers.
//!
//! The fuzz target `flight` has this file too.

use arrow_flight::flight_service_client::FlightServiceClient;
use arrow_flight::sql::{
    ActionBeginTransactionRequest, ActionCancelQueryRequest, ActionClosePreparedStatementRequest,
    ActionCreatePreparedStatementRequest, Any, CommandGetCatalogs, CommandGetDbSchemas,
    CommandGetSqlInfo, CommandGetTables, CommandPreparedStatementQuery,
    CommandPreparedStatementUpdate, CommandStatementIngest, CommandStatementQuery,
    CommandStatementUpdate, ProstMessageExt, TableDefinitionOptions, TicketStatementQuery,
};
use arrow_flight::{
    Action, Criteria, Empty, FlightData, FlightDescriptor, FlightInfo, HandshakeRequest, Ticket,
};
use futures::TryStreamExt;
use prost::Message;
use tonic::transport::Channel;
use tonic::{Code, Request, Status};

/// Takes numbers and bytes off an input; zeros when it is used up.
pub struct Bytes<'a>(pub &'a [u8]);

impl Bytes<'_> {
    /// A number below `end`.
    pub fn below(&mut self, end: usize) -> usize {
        let (first, rest) = self.0.split_first().unwrap_or((&0, &[]));
        self.0 = rest;
        usize::from(*first) % end.max(1)
    }

    /// Up to `most` bytes.
    pub fn some(&mut self, most: usize) -> Vec<u8> {
        let count = self.below(most + 1).min(self.0.len());
        let (some, rest) = self.0.split_at(count);
        self.0 = rest;
        some.to_vec()
    }

    fn text(&mut self) -> String {
        String::from_utf8_lossy(&self.some(40)).into_owned()
    }

    /// A statement: of ours with something in it, or any text.
    fn statement(&mut self) -> String {
        const FORMS: [&str; 10] = [
            "SELECT * FROM people WHERE name = '{}'",
            "SELECT {} FROM people",
            "INSERT INTO people VALUES ('{}')",
            "DROP TABLE {}",
            "TRUNCATE TABLE people {}",
            "CREATE TABLE {} AS SELECT 1",
            "COPY people TO '/nowhere/{}'",
            "EXPLAIN ANALYZE {}",
            "SELECT ? {}",
            "{}",
        ];
        let form = FORMS[self.below(FORMS.len())];
        form.replace("{}", &self.text())
    }

    /// A handle of ours in form, and of nobody in fact.
    fn handle(&mut self) -> Vec<u8> {
        let mut handle = vec![self.below(3) as u8];
        handle.extend(self.some(16));
        if self.below(2) == 0 {
            handle.resize(17, 7);
            handle.extend(self.statement().into_bytes());
        }
        handle
    }

    fn command(&mut self) -> Vec<u8> {
        fn any(command: &impl ProstMessageExt) -> Vec<u8> {
            command.as_any().encode_to_vec()
        }
        let mut bytes = match self.below(12) {
            0 => any(&CommandStatementQuery { query: self.statement(), transaction_id: None }),
            1 => any(&CommandStatementUpdate { query: self.statement(), transaction_id: None }),
            2 => any(&TicketStatementQuery { statement_handle: self.handle().into() }),
            3 => any(&CommandPreparedStatementQuery {
                prepared_statement_handle: self.handle().into(),
            }),
            4 => any(&CommandPreparedStatementUpdate {
                prepared_statement_handle: self.handle().into(),
            }),
            5 => any(&CommandGetTables {
                table_name_filter_pattern: Some(self.text()),
                include_schema: true,
                ..CommandGetTables::default()
            }),
            6 => any(&CommandGetDbSchemas {
                catalog: Some(self.text()),
                db_schema_filter_pattern: Some(self.text()),
            }),
            7 => any(&CommandGetSqlInfo { info: vec![self.below(256) as u32; 3] }),
            8 => any(&CommandStatementIngest {
                table: self.text(),
                table_definition_options: Some(TableDefinitionOptions {
                    if_not_exist: self.below(4) as i32,
                    if_exists: self.below(5) as i32,
                }),
                ..CommandStatementIngest::default()
            }),
            9 => any(&CommandGetCatalogs {}),
            10 => Any { type_url: self.text(), value: self.some(60).into() }.encode_to_vec(),
            _ => self.some(60),
        };
        self.damage(&mut bytes);
        bytes
    }

    fn action(&mut self) -> Action {
        fn body(command: &impl ProstMessageExt) -> Vec<u8> {
            command.as_any().encode_to_vec()
        }
        let (name, mut bytes) = match self.below(7) {
            0 => (
                "CreatePreparedStatement".to_owned(),
                body(&ActionCreatePreparedStatementRequest {
                    query: self.statement(),
                    transaction_id: None,
                }),
            ),
            1 => (
                "ClosePreparedStatement".to_owned(),
                body(&ActionClosePreparedStatementRequest {
                    prepared_statement_handle: self.handle().into(),
                }),
            ),
            2 => {
                let info = FlightInfo::new().encode_to_vec().into();
                ("CancelQuery".to_owned(), body(&ActionCancelQueryRequest { info }))
            }
            3 => ("BeginTransaction".to_owned(), body(&ActionBeginTransactionRequest {})),
            4 => ("CancelFlightInfo".to_owned(), self.some(60)),
            5 => ("CreatePreparedStatement".to_owned(), self.some(60)),
            _ => (self.text(), self.some(60)),
        };
        self.damage(&mut bytes);
        Action::new(name, bytes)
    }

    /// Changes a byte, cuts the end, or does nothing.
    pub fn damage(&mut self, bytes: &mut Vec<u8>) {
        let at = self.below(256) * self.below(256);
        match self.below(6) {
            0 if !bytes.is_empty() => {
                let at = at % bytes.len();
                bytes[at] ^= 1 << self.below(8);
            }
            1 => bytes.truncate(at % (bytes.len() + 1)),
            _ => {}
        }
    }

    /// Messages of a DoPut: a schema and rows, damaged.
    fn messages(&mut self, whole: &[FlightData]) -> Vec<FlightData> {
        let descriptor = FlightDescriptor::new_cmd(self.command());
        let mut messages = whole.to_vec();
        for message in &mut messages {
            let mut header = message.data_header.to_vec();
            let mut body = message.data_body.to_vec();
            self.damage(&mut header);
            self.damage(&mut body);
            (message.data_header, message.data_body) = (header.into(), body.into());
        }
        messages.truncate(1 + self.below(3));
        if let Some(first) = messages.first_mut() {
            first.flight_descriptor = Some(descriptor);
        }
        messages
    }

    fn descriptor(&mut self) -> FlightDescriptor {
        match self.below(4) {
            0 => FlightDescriptor::new_path(vec![self.text()]),
            _ => FlightDescriptor::new_cmd(self.command()),
        }
    }
}

/// Sends one request and reads its answer to the end; tells the status of that.
pub async fn send(
    client: &mut FlightServiceClient<Channel>,
    token: &str,
    input: &mut Bytes<'_>,
    whole: &[FlightData],
) -> Code {
    match answer(client, token, input, whole).await {
        Ok(()) => Code::Ok,
        Err(status) => status.code(),
    }
}

async fn answer(
    client: &mut FlightServiceClient<Channel>,
    token: &str,
    input: &mut Bytes<'_>,
    whole: &[FlightData],
) -> Result<(), Status> {
    fn with<T>(token: &str, message: T) -> Request<T> {
        let mut request = Request::new(message);
        if let Ok(value) = token.parse() {
            request.metadata_mut().insert("authorization", value);
        }
        request
    }
    // Some say who they are in a way of their own.
    let other = format!("Bearer {}", input.text().escape_default());
    let token = if input.below(16) == 0 { &other } else { token };
    match input.below(9) {
        0 => {
            let ticket = Ticket::new(input.command());
            let rows = client.do_get(with(token, ticket)).await?.into_inner();
            rows.try_for_each(|_| async { Ok(()) }).await
        }
        1 => client.get_flight_info(with(token, input.descriptor())).await.map(drop),
        2 => client.get_schema(with(token, input.descriptor())).await.map(drop),
        3 => client.poll_flight_info(with(token, input.descriptor())).await.map(drop),
        4 => {
            let answers = client.do_action(with(token, input.action())).await?.into_inner();
            answers.try_for_each(|_| async { Ok(()) }).await
        }
        5 => {
            let messages = futures::stream::iter(input.messages(whole));
            let answers = client.do_put(with(token, messages)).await?.into_inner();
            answers.try_for_each(|_| async { Ok(()) }).await
        }
        6 => {
            let messages = futures::stream::iter(input.messages(whole));
            let answers = client.do_exchange(with(token, messages)).await?.into_inner();
            answers.try_for_each(|_| async { Ok(()) }).await
        }
        7 => {
            let payload = input.some(40).into();
            let hello = HandshakeRequest { protocol_version: 0, payload };
            let hello = futures::stream::iter([hello]);
            let answers = client.handshake(with(token, hello)).await?.into_inner();
            answers.try_for_each(|_| async { Ok(()) }).await
        }
        _ => {
            let criteria = Criteria { expression: input.some(20).into() };
            client.list_flights(with(token, criteria)).await.map(drop)?;
            client.list_actions(with(token, Empty {})).await.map(drop)
        }
    }
}
