//! TLS on the ports for clients: certificates can be reloaded without closing connections.
//!
//! Always true: a certificate and key that cannot be read, or do not match, never replace valid
//! ones; open connections stay open.

mod greet;

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use parking_lot::RwLock;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::crypto::{CryptoProvider, ring};
use tokio_rustls::rustls::pki_types::pem::PemObject;
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tokio_rustls::rustls::server::{ClientHello, ResolvesServerCert};
use tokio_rustls::rustls::sign::CertifiedKey;
use tokio_rustls::rustls::{
    ClientConfig, ConfigBuilder, RootCertStore, ServerConfig, WantsVerifier,
};
use x509_parser::prelude::{FromDer, X509Certificate};

use crate::settings::KeyFiles;

pub use greet::greet;

/// Why a certificate was refused.
#[derive(Debug, thiserror::Error)]
#[error("{}: {message}", path.display())]
pub struct TlsError {
    path: PathBuf,
    message: String,
}

impl TlsError {
    fn new(path: &Path, message: impl Into<String>) -> Self {
        Self { path: path.to_owned(), message: message.into() }
    }
}

/// The current certificate of the ports for clients.
#[derive(Debug)]
pub struct Certificates {
    files: KeyFiles,
    current: RwLock<Arc<CertifiedKey>>,
}

impl Certificates {
    /// Reads a certificate and its key.
    ///
    /// # Errors
    /// If one of them cannot be read, or they do not match.
    pub fn read(files: &KeyFiles) -> Result<Arc<Self>, TlsError> {
        let current = RwLock::new(Arc::new(certified(files)?));
        Ok(Arc::new(Self { files: files.clone(), current }))
    }

    /// Reads them again; returns whether the certificate has changed.
    ///
    /// # Errors
    /// As [`read`](Self::read); then the previous ones stay.
    pub fn reload(&self) -> Result<bool, TlsError> {
        let read = Arc::new(certified(&self.files)?);
        let mut current = self.current.write();
        let changed = current.cert != read.cert;
        *current = read;
        Ok(changed)
    }

    /// The acceptor for incoming connections.
    #[must_use]
    pub fn acceptor(self: &Arc<Self>) -> TlsAcceptor {
        let config = server_builder()
            .with_no_client_auth()
            .with_cert_resolver(Arc::clone(self) as Arc<dyn ResolvesServerCert>);
        TlsAcceptor::from(Arc::new(config))
    }
}

impl ResolvesServerCert for Certificates {
    fn resolve(&self, _: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        Some(Arc::clone(&self.current.read()))
    }
}

/// The configuration of a client that trusts this authority.
///
/// # Errors
/// If the file has no certificate.
pub fn client_config(authority: &Path) -> Result<Arc<ClientConfig>, TlsError> {
    let mut roots = RootCertStore::empty();
    // Some system certificates cannot be parsed; skip them.
    if roots.add_parsable_certificates(chain(authority)?).0 == 0 {
        return Err(TlsError::new(authority, "no authority is in it"));
    }
    let config = client_builder().with_root_certificates(roots).with_no_client_auth();
    Ok(Arc::new(config))
}

/// The common name of a certificate.
///
/// # Errors
/// If the file has no certificate, or that has no common name.
pub fn common_name(certificate: &Path) -> Result<String, TlsError> {
    let name = first(certificate, name_of)?;
    name.ok_or_else(|| TlsError::new(certificate, "it has no common name"))
}

fn name_of(parsed: &X509Certificate<'_>) -> Option<String> {
    let name = parsed.subject().iter_common_name().next();
    name.and_then(|name| name.as_str().ok()).map(str::to_owned)
}

/// The common name in a certificate from a handshake.
fn name_in(shown: &CertificateDer<'_>) -> Result<Option<String>, String> {
    let (_, parsed) = X509Certificate::from_der(shown).map_err(|error| error.to_string())?;
    Ok(name_of(&parsed))
}

/// When a certificate expires.
///
/// # Errors
/// If the file has no certificate.
pub fn expires(certificate: &Path) -> Result<SystemTime, TlsError> {
    let end = first(certificate, |parsed| parsed.validity().not_after.timestamp())?;
    let end = Duration::from_secs(u64::try_from(end).unwrap_or(0));
    Ok(SystemTime::UNIX_EPOCH + end)
}

/// Reads a value from the first certificate of a file.
fn first<T>(path: &Path, read: impl FnOnce(&X509Certificate<'_>) -> T) -> Result<T, TlsError> {
    let first = chain(path)?.into_iter().next();
    let first = first.ok_or_else(|| TlsError::new(path, "no certificate is in it"))?;
    let (_, parsed) = X509Certificate::from_der(&first)
        .map_err(|error| TlsError::new(path, error.to_string()))?;
    Ok(read(&parsed))
}

/// Checks that a certificate, its key and an authority can be read, and that certificate and key
/// match.
///
/// # Errors
/// If not.
pub fn check(authority: &Path, files: &KeyFiles) -> Result<(), TlsError> {
    client_config(authority)?;
    certified(files).map(drop)
}

fn server_builder() -> ConfigBuilder<ServerConfig, WantsVerifier> {
    let builder = ServerConfig::builder_with_provider(provider());
    builder.with_safe_default_protocol_versions().expect("ring knows the usual versions")
}

fn client_builder() -> ConfigBuilder<ClientConfig, WantsVerifier> {
    let builder = ClientConfig::builder_with_provider(provider());
    builder.with_safe_default_protocol_versions().expect("ring knows the usual versions")
}

fn provider() -> Arc<CryptoProvider> {
    Arc::new(ring::default_provider())
}

fn certified(files: &KeyFiles) -> Result<CertifiedKey, TlsError> {
    let key = PrivateKeyDer::from_pem_file(&files.key)
        .map_err(|error| TlsError::new(&files.key, pem_error(&error)))?;
    let refused = |error| TlsError::new(&files.cert, format!("with its key: {error}"));
    CertifiedKey::from_der(chain(&files.cert)?, key, &ring::default_provider()).map_err(refused)
}

/// The certificates in a file; at least one.
fn chain(path: &Path) -> Result<Vec<CertificateDer<'static>>, TlsError> {
    let read = CertificateDer::pem_file_iter(path).and_then(Iterator::collect::<Result<Vec<_>, _>>);
    match read {
        Ok(chain) if chain.is_empty() => Err(TlsError::new(path, "no certificate is in it")),
        Ok(chain) => Ok(chain),
        Err(error) => Err(TlsError::new(path, pem_error(&error))),
    }
}

/// What is wrong with a PEM file, without revealing its content.
fn pem_error(error: &tokio_rustls::rustls::pki_types::pem::Error) -> String {
    use tokio_rustls::rustls::pki_types::pem::Error;
    match error {
        Error::Io(error) => error.to_string(),
        Error::NoItemsFound => "no private key or certificate is in it".to_owned(),
        _ => "it is no PEM file".to_owned(),
    }
}
