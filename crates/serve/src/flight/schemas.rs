//! `GetSchema`: the columns of an answer, without running what it answers.
//!
//! The crate's Flight SQL answers every call of Flight but this one, so it stands before it here.

use arrow_flight::flight_service_server::FlightService;
use arrow_flight::sql::{Any, Command};
use arrow_flight::{
    Action, ActionType, Criteria, Empty, FlightData, FlightDescriptor, FlightInfo,
    HandshakeRequest, HandshakeResponse, PollInfo, PutResult, Result as ActionResult, SchemaResult,
    Ticket,
};
use futures::stream::BoxStream;
use prost::Message;
use tonic::{Code, Request, Response, Status, Streaming};

use super::prepared::schema_bytes;
use super::service::{Served, Service};
use super::status::status;
use super::wire_types::wire_schema;
use crate::statement::{Parameters, Planned};

/// Flight SQL with `GetSchema`.
#[derive(Debug, Clone)]
pub(crate) struct WithSchemas(pub Service);

impl WithSchemas {
    async fn schema(&self, request: Request<FlightDescriptor>) -> Served<SchemaResult> {
        let no_command =
            |_| Status::invalid_argument("the descriptor is not a command of Flight SQL");
        let any = Any::decode(&*request.get_ref().cmd).map_err(no_command)?;
        let command =
            Command::try_from(any).map_err(|e| Status::invalid_argument(e.to_string()))?;
        let planned = match command {
            Command::CommandStatementQuery(query) => {
                let rights = self.0.caller(&request)?;
                self.0.plan(&rights, &query.query, Parameters::default()).await?
            }
            Command::CommandPreparedStatementQuery(query) => {
                let rights = self.0.caller(&request)?;
                let handle = &query.prepared_statement_handle;
                let bound = self.0.shared.prepared.get(&rights, handle).map_err(status)?;
                self.0.plan_bound(&rights, &bound).await?
            }
            // The rest does nothing but tell of itself.
            _ => {
                let info = self.0.get_flight_info(request).await?.into_inner();
                return Ok(SchemaResult { schema: info.schema });
            }
        };
        schema_result(&planned)
    }
}

fn schema_result(planned: &Planned) -> Served<SchemaResult> {
    let schema = schema_bytes(&wire_schema(planned.schema())).map_err(status)?;
    Ok(SchemaResult { schema })
}

/// The status of a call that the library of Flight SQL could not read: it says `Internal`, which is for faults of ours.
fn refused(status: Status) -> Status {
    match status.code() == Code::Internal && !status.message().starts_with("internal error") {
        true => Status::invalid_argument(status.message()),
        false => status,
    }
}

type Stream<T> = BoxStream<'static, Served<T>>;

#[tonic::async_trait]
impl FlightService for WithSchemas {
    type HandshakeStream = Stream<HandshakeResponse>;
    type ListFlightsStream = Stream<FlightInfo>;
    type DoGetStream = Stream<FlightData>;
    type DoPutStream = Stream<PutResult>;
    type DoActionStream = Stream<ActionResult>;
    type ListActionsStream = Stream<ActionType>;
    type DoExchangeStream = Stream<FlightData>;

    async fn get_schema(
        &self,
        request: Request<FlightDescriptor>,
    ) -> Served<Response<SchemaResult>> {
        self.schema(request).await.map(Response::new)
    }

    async fn handshake(
        &self,
        request: Request<Streaming<HandshakeRequest>>,
    ) -> Served<Response<Stream<HandshakeResponse>>> {
        self.0.handshake(request).await.map_err(refused)
    }

    async fn list_flights(
        &self,
        request: Request<Criteria>,
    ) -> Served<Response<Stream<FlightInfo>>> {
        self.0.list_flights(request).await
    }

    async fn get_flight_info(
        &self,
        request: Request<FlightDescriptor>,
    ) -> Served<Response<FlightInfo>> {
        self.0.get_flight_info(request).await.map_err(refused)
    }

    async fn poll_flight_info(
        &self,
        request: Request<FlightDescriptor>,
    ) -> Served<Response<PollInfo>> {
        self.0.poll_flight_info(request).await
    }

    async fn do_get(&self, request: Request<Ticket>) -> Served<Response<Stream<FlightData>>> {
        self.0.do_get(request).await.map_err(refused)
    }

    async fn do_put(
        &self,
        request: Request<Streaming<FlightData>>,
    ) -> Served<Response<Stream<PutResult>>> {
        self.0.do_put(request).await.map_err(refused)
    }

    async fn do_exchange(
        &self,
        request: Request<Streaming<FlightData>>,
    ) -> Served<Response<Stream<FlightData>>> {
        self.0.do_exchange(request).await
    }

    async fn do_action(&self, request: Request<Action>) -> Served<Response<Stream<ActionResult>>> {
        self.0.do_action(request).await.map_err(refused)
    }

    async fn list_actions(&self, request: Request<Empty>) -> Served<Response<Stream<ActionType>>> {
        self.0.list_actions(request).await
    }
}
