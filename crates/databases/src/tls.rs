//! How TLS to databases checks certificates, by rustls.

use std::sync::Arc;

use coload_types::{Error, Result};
use tokio_rustls::rustls::client::WebPkiServerVerifier;
use tokio_rustls::rustls::client::danger::{
    HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier,
};
use tokio_rustls::rustls::crypto::{
    CryptoProvider, ring, verify_tls12_signature, verify_tls13_signature,
};
use tokio_rustls::rustls::pki_types::pem::PemObject;
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName, UnixTime};
use tokio_rustls::rustls::{
    self, CertificateError, ClientConfig, DigitallySignedStruct, RootCertStore, SignatureScheme,
    SupportedProtocolVersion,
};

/// What is checked of the server's certificate.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Checked {
    /// Nothing: what goes over the wire is hidden from those who only listen.
    Nothing,
    /// Somebody we trust signed it.
    Signer,
    /// The same, and it is of the host that we asked for.
    SignerAndName,
}

/// Files of certificates, in PEM.
#[derive(Debug, Clone, Default)]
pub struct Certificates {
    /// Roots; the system's if `None`.
    pub root: Option<String>,
    /// The client's certificate and its key.
    pub client: Option<(String, String)>,
}

/// What connections of these versions of TLS, with these certificates, have in common.
///
/// # Errors
/// `Invalid` when a certificate cannot be read.
pub fn client_config(
    checked: Checked,
    certificates: &Certificates,
    versions: &[&'static SupportedProtocolVersion],
) -> Result<Arc<ClientConfig>> {
    let wrong = |what: &str, e: &dyn std::fmt::Display| Error::Invalid(format!("{what}: {e}"));
    let provider = Arc::new(ring::default_provider());
    let builder = ClientConfig::builder_with_provider(Arc::clone(&provider))
        .with_protocol_versions(versions)
        .map_err(|e| wrong("TLS", &e))?;
    let mut roots = RootCertStore::empty();
    match &certificates.root {
        Some(file) => {
            let all = CertificateDer::pem_file_iter(file).map_err(|e| wrong(file, &e))?;
            for certificate in all {
                let certificate = certificate.map_err(|e| wrong(file, &e))?;
                roots.add(certificate).map_err(|e| wrong(file, &e))?;
            }
        }
        None if checked != Checked::Nothing => {
            let system = rustls_native_certs::load_native_certs();
            roots.add_parsable_certificates(system.certs);
        }
        None => {}
    }
    let verifier: Arc<dyn ServerCertVerifier> = match checked {
        Checked::Nothing => Arc::new(Lenient { provider, signer: None }),
        Checked::Signer | Checked::SignerAndName => {
            let roots = Arc::new(roots);
            let strict = WebPkiServerVerifier::builder_with_provider(roots, Arc::clone(&provider))
                .build()
                .map_err(|e| wrong("root certificates of TLS", &e))?;
            match checked {
                Checked::SignerAndName => strict,
                _ => Arc::new(Lenient { provider, signer: Some(strict) }),
            }
        }
    };
    let builder = builder.dangerous().with_custom_certificate_verifier(verifier);
    let config = match &certificates.client {
        None => builder.with_no_client_auth(),
        Some((certificate, key)) => {
            let chain = CertificateDer::pem_file_iter(certificate)
                .and_then(|all| all.collect::<std::result::Result<Vec<_>, _>>())
                .map_err(|e| wrong(certificate, &e))?;
            let key_der = PrivateKeyDer::from_pem_file(key).map_err(|e| wrong(key, &e))?;
            builder.with_client_auth_cert(chain, key_der).map_err(|e| wrong(certificate, &e))?
        }
    };
    Ok(Arc::new(config))
}

/// Whether an error is of TLS itself, and not of the bytes that did not come or go: it would be so again.
pub fn is_of_tls(error: &(dyn std::error::Error + 'static)) -> bool {
    let mut next = Some(error);
    while let Some(error) = next {
        if error.is::<rustls::Error>() {
            return true;
        }
        // What an error of I/O wraps is not its source.
        let wrapped = error.downcast_ref::<std::io::Error>().and_then(std::io::Error::get_ref);
        next = match wrapped {
            Some(wrapped) => Some(wrapped),
            None => error.source(),
        };
    }
    false
}

/// Checks less of a certificate than its signer and its name.
#[derive(Debug)]
struct Lenient {
    provider: Arc<CryptoProvider>,
    /// Who must have signed it; anybody if `None`.
    signer: Option<Arc<WebPkiServerVerifier>>,
}

impl ServerCertVerifier for Lenient {
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        server_name: &ServerName<'_>,
        ocsp_response: &[u8],
        now: UnixTime,
    ) -> std::result::Result<ServerCertVerified, rustls::Error> {
        use CertificateError::{NotValidForName, NotValidForNameContext};
        let Some(signer) = &self.signer else { return Ok(ServerCertVerified::assertion()) };
        let verified =
            signer.verify_server_cert(end_entity, intermediates, server_name, ocsp_response, now);
        match verified {
            Err(rustls::Error::InvalidCertificate(
                NotValidForName | NotValidForNameContext { .. },
            )) => Ok(ServerCertVerified::assertion()),
            other => other,
        }
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> std::result::Result<HandshakeSignatureValid, rustls::Error> {
        // Of a certificate that anybody may have made the signature proves nothing, and some servers make such that are not
        // read. So it is for PostgreSQL (sslmode=require) and SQL Server (trustServerCertificate); the client of MySQL checks
        // it in any case.
        if self.signer.is_none() {
            return Ok(HandshakeSignatureValid::assertion());
        }
        verify_tls12_signature(message, cert, dss, &self.provider.signature_verification_algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> std::result::Result<HandshakeSignatureValid, rustls::Error> {
        if self.signer.is_none() {
            return Ok(HandshakeSignatureValid::assertion());
        }
        verify_tls13_signature(message, cert, dss, &self.provider.signature_verification_algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.provider.signature_verification_algorithms.supported_schemes()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_of_tls_are_told_from_those_of_the_network() {
        let distrust = rustls::Error::InvalidCertificate(CertificateError::UnknownIssuer);
        assert!(is_of_tls(&distrust));
        assert!(is_of_tls(&std::io::Error::other(distrust.clone())));
        assert!(is_of_tls(&std::io::Error::other(std::io::Error::other(distrust))));
        assert!(!is_of_tls(&std::io::Error::from(std::io::ErrorKind::ConnectionReset)));
        assert!(!is_of_tls(&std::io::Error::other("rustls")));
    }
}
