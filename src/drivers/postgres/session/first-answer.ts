// Classifies the first bytes from a server: PostgreSQL, something else, or nothing. This happens before they are read as a
// login, so that a wrong port gets a clear error.
import { AppError } from '../../../errors.ts'

const OTHER = 'The server at that host and port is not PostgreSQL.'
const SILENT = 'The server at that host and port accepts the connection but does not answer like PostgreSQL.'
const MESSAGE_BYTES_MAX = 16 << 10

export interface FirstAnswer {
  /** To be told of what arrives, before anything else reads it. */
  hear(bytes: Buffer): void
  /** The failure of a login, or the sentence that fits better. */
  explain(error: unknown): unknown
}

export function firstAnswer(isPlain: boolean): FirstAnswer {
  let first: Buffer | null = null
  return {
    hear: (bytes) => {
      first ??= Buffer.from(bytes.subarray(0, 16))
    },
    explain: (error) => {
      if (first !== null && (isPlain ? isLogin(first) : isAnswerToTls(first))) return error
      return new AppError('DATASOURCE_UNAVAILABLE', first === null ? SILENT : OTHER, { cause: error })
    },
  }
}

/** One letter, and not a byte more before the handshake; or an error of a server that never heard of TLS. */
function isAnswerToTls(first: Buffer): boolean {
  return first.length === 1 ? first[0] === 0x53 || first[0] === 0x4e : first[0] === 0x45 && isLogin(first)
}

/** A message that may open a login. A greeting of MySQL begins with a length, which may be any letter. */
function isLogin(first: Buffer): boolean {
  // In pieces: what follows tells.
  if (first.length < 6) return 'RENv'.includes(first.toString('latin1', 0, 1))
  const length = first.readUInt32BE(1)
  if (length < 5 || length > MESSAGE_BYTES_MAX) return false
  const code = first.toString('latin1', 0, 1)
  if (code === 'R') return first.length >= 9 && first.readUInt32BE(5) <= 12
  // Their first field is the severity.
  return code === 'v' || ((code === 'E' || code === 'N') && first[5] === 0x53)
}
