// One sentence for each error code of a host that could not be reached, or whose TLS certificate is not trusted.

const NETWORK: Readonly<Record<string, string>> = {
  ECONNREFUSED: 'The connection was refused: nothing listens at that host and port.',
  ECONNRESET: 'The server closed the connection during the login.',
  EPIPE: 'The server closed the connection during the login.',
  ENOTFOUND: 'There is no such host.',
  EAI_AGAIN: 'The host’s name cannot be resolved at the moment.',
  ENODATA: 'There is no such host.',
  EHOSTUNREACH: 'The host cannot be reached from here.',
  ENETUNREACH: 'The host cannot be reached from here.',
  EHOSTDOWN: 'The host cannot be reached from here.',
  EADDRNOTAVAIL: 'The host cannot be reached from here.',
  EACCES: 'The host cannot be reached from here.',
  ETIMEDOUT: 'The server did not answer in time.',
}

const UNKNOWN_CA =
  'The server’s certificate comes from an authority that is not trusted; set the authority’s certificate as tlsCa.'
const TLS: Readonly<Record<string, string>> = {
  ERR_TLS_CERT_ALTNAME_INVALID: 'The server’s certificate is for another host name.',
  CERT_HAS_EXPIRED: 'The server’s certificate has expired.',
  CERT_NOT_YET_VALID: 'The server’s certificate is not valid yet.',
  CERT_REVOKED: 'The server’s certificate was revoked.',
  UNABLE_TO_VERIFY_LEAF_SIGNATURE: UNKNOWN_CA,
  SELF_SIGNED_CERT_IN_CHAIN: UNKNOWN_CA,
  DEPTH_ZERO_SELF_SIGNED_CERT: UNKNOWN_CA,
  UNABLE_TO_GET_ISSUER_CERT: UNKNOWN_CA,
  UNABLE_TO_GET_ISSUER_CERT_LOCALLY: UNKNOWN_CA,
  CERT_UNTRUSTED: UNKNOWN_CA,
  CERT_SIGNATURE_FAILURE: UNKNOWN_CA,
  INVALID_CA: UNKNOWN_CA,
}

/** `code` is the code of a Node error. Returns undefined for an unknown code. */
export function networkSentence(code: string): string | undefined {
  return NETWORK[code] ?? TLS[code]
}
