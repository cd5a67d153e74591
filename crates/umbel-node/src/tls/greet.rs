//! A TLS handshake with another host, and nothing more: checks whether each trusts the other.
//!
//! As for links between hosts, the certificate's common name counts and the address does not.

use std::io::{self, Read as _};
use std::net::{SocketAddr, TcpStream};
use std::sync::Arc;
use std::time::Duration;

use tokio_rustls::rustls::client::WebPkiServerVerifier;
use tokio_rustls::rustls::client::danger::{
    HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier,
};
use tokio_rustls::rustls::pki_types::pem::PemObject as _;
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName, UnixTime};
use tokio_rustls::rustls::{
    CertificateError, ClientConfig, ClientConnection, DigitallySignedStruct, Error, RootCertStore,
    SignatureScheme, Stream,
};

use super::{TlsError, chain, client_builder, name_in, pem_error, provider};
use crate::settings::PeerFiles;

/// How long to wait for the other side to refuse this host's certificate: that happens after the
/// handshake.
const REFUSAL: Duration = Duration::from_millis(500);

/// Performs a handshake with the host at an address; returns the common name of its certificate.
///
/// # Errors
/// One line: no host is there, it does not use TLS, or one of the two does not trust the other.
pub fn greet(address: SocketAddr, files: &PeerFiles, patience: Duration) -> Result<String, String> {
    let config = config(files).map_err(|error| error.to_string())?;
    let mut socket = TcpStream::connect_timeout(&address, patience).map_err(|e| e.to_string())?;
    let limit = |socket: &TcpStream, time| socket.set_read_timeout(Some(time));
    limit(&socket, patience).map_err(|error| error.to_string())?;
    let name = ServerName::IpAddress(address.ip().into());
    let mut session = ClientConnection::new(config, name).map_err(|error| explanation(&error))?;
    while session.is_handshaking() {
        session.complete_io(&mut socket).map_err(|error| why(&error))?;
    }
    let shown = session.peer_certificates().and_then(<[_]>::first);
    let shown = shown.and_then(|certificate| name_in(certificate).ok().flatten());
    limit(&socket, REFUSAL).map_err(|error| error.to_string())?;
    match Stream::new(&mut session, &mut socket).read(&mut [0]) {
        Err(error) if error.kind() == io::ErrorKind::InvalidData => Err(why(&error)),
        _ => shown.ok_or_else(|| "its certificate has no common name".to_owned()),
    }
}

fn config(files: &PeerFiles) -> Result<Arc<ClientConfig>, TlsError> {
    let mut roots = RootCertStore::empty();
    roots.add_parsable_certificates(chain(&files.ca)?);
    let refused = |error: &dyn std::fmt::Display| TlsError::new(&files.ca, error.to_string());
    let inner = WebPkiServerVerifier::builder_with_provider(Arc::new(roots), provider());
    let inner = inner.build().map_err(|error| refused(&error))?;
    let key = PrivateKeyDer::from_pem_file(&files.own.key)
        .map_err(|error| TlsError::new(&files.own.key, pem_error(&error)))?;
    let config = client_builder()
        .dangerous()
        .with_custom_certificate_verifier(Arc::new(WhateverName(inner)))
        .with_client_auth_cert(chain(&files.own.cert)?, key)
        .map_err(|error| TlsError::new(&files.own.cert, error.to_string()))?;
    Ok(Arc::new(config))
}

/// The error, in words that say what to do.
fn why(error: &io::Error) -> String {
    let inner = error.get_ref().and_then(|inner| inner.downcast_ref::<Error>());
    inner.map_or_else(|| format!("no TLS: {error}"), explanation)
}

fn explanation(error: &Error) -> String {
    match error {
        // A bad signature means an authority of the same name with another key.
        Error::InvalidCertificate(
            CertificateError::UnknownIssuer | CertificateError::BadSignature,
        ) => "its certificate is of another authority than peer_ca".to_owned(),
        Error::InvalidCertificate(
            CertificateError::Expired | CertificateError::ExpiredContext { .. },
        ) => "the time of its certificate is over: make it another".to_owned(),
        Error::AlertReceived(alert) => {
            format!("it refuses this host's certificate ({alert:?}): is its authority another?")
        }
        Error::InvalidMessage(_) => "it speaks no TLS: does it have peer_cert?".to_owned(),
        other => other.to_string(),
    }
}

/// Accepts every certificate that the authority signed, whatever address it was found at.
#[derive(Debug)]
struct WhateverName(Arc<WebPkiServerVerifier>);

impl ServerCertVerifier for WhateverName {
    fn verify_server_cert(
        &self,
        certificate: &CertificateDer<'_>,
        between: &[CertificateDer<'_>],
        name: &ServerName<'_>,
        ocsp: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        use CertificateError::{NotValidForName, NotValidForNameContext};
        // The name is checked last, when everything else is valid.
        match self.0.verify_server_cert(certificate, between, name, ocsp, now) {
            Err(Error::InvalidCertificate(NotValidForName | NotValidForNameContext { .. })) => {
                Ok(ServerCertVerified::assertion())
            }
            verified => verified,
        }
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.0.verify_tls12_signature(message, certificate, signed)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.0.verify_tls13_signature(message, certificate, signed)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.0.supported_verify_schemes()
    }
}
