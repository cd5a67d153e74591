//! One connection: handles requests until it ends or a deadline passes.

use std::net::IpAddr;
use std::sync::Arc;

use axum::Router;
use axum::extract::Request;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::{Service as _, service_fn};
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::sync::watch;

use super::Limits;
use super::body::{Answer, Busy, Sent};
use super::clients::Admission;
use super::guard::From;
use super::watched::Watched;

/// What all connections share.
#[derive(Debug, Clone)]
pub(super) struct Connections {
    pub(super) router: Router,
    pub(super) limits: Limits,
    pub(super) stopped: watch::Receiver<bool>,
}

impl Connections {
    /// Serves a connection over any stream until it ends, must make room, or the server stops; then
    /// a running request is finished.
    pub(super) async fn serve<S>(
        mut self,
        stream: S,
        from: IpAddr,
        admission: Admission,
    ) -> hyper::Result<()>
    where
        S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
    {
        let client = Arc::clone(&admission.client);
        let io = TokioIo::new(Watched::new(stream, Arc::clone(&client)));
        let (router, asked) = (TowerToHyperService::new(self.router), Arc::clone(&client));
        let service = service_fn(move |mut request: Request<Incoming>| {
            request.extensions_mut().insert(From(from));
            let busy = Busy::new(&asked, request.body());
            let answer = router.call(request.map(|body| Sent::new(body, &asked)));
            async { answer.await.map(|answer| answer.map(|body| Answer::new(body, busy))) }
        });
        let connection = http1::Builder::new()
            .timer(TokioTimer::new())
            // hyper's timeout would include the time between requests; the loop below distinguishes
            // the two.
            .header_read_timeout(None)
            .max_header_size(self.limits.header_bytes)
            .max_buf_size(self.limits.header_bytes.max(64 << 10) + (256 << 10))
            .serve_connection(io, service);
        let mut connection = std::pin::pin!(connection);
        let mut stopping = false;
        loop {
            let deadline = client.deadline(&self.limits);
            tokio::select! {
                ended = connection.as_mut() => return ended,
                () = client.leave.notified() => return Ok(()),
                () = tokio::time::sleep_until(deadline) => {
                    if client.deadline(&self.limits) <= tokio::time::Instant::now() {
                        return Ok(());
                    }
                }
                _ = self.stopped.wait_for(|stopped| *stopped), if !stopping => {
                    stopping = true;
                    connection.as_mut().graceful_shutdown();
                }
            }
        }
    }
}
