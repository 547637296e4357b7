// Recognizes by a server's first bytes whether it is PostgreSQL, so that a login at a wrong port fails with a clear
// error.
import { AppError } from '../../../errors.ts'

const OTHER = 'The server at that host and port is not PostgreSQL.'
const SILENT = 'The server at that host and port accepts the connection but does not answer like PostgreSQL.'
const MESSAGE_BYTES_MAX = 16 << 10

export interface FirstAnswer {
  /** Receives every chunk before anything else reads it. */
  hear(bytes: Buffer): void
  /** Returns a clearer error for a failed login if the first bytes allow one. Otherwise returns the given error. */
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

/**
 * Returns whether the bytes answer a request for TLS: one letter and nothing else, or an error from a server without
 * TLS.
 */
function isAnswerToTls(first: Buffer): boolean {
  return first.length === 1 ? first[0] === 0x53 || first[0] === 0x4e : first[0] === 0x45 && isLogin(first)
}

/**
 * Returns whether the bytes can begin a login message. The first byte alone does not tell: MySQL's greeting begins with
 * a length, which may equal any letter.
 */
function isLogin(first: Buffer): boolean {
  // With fewer than six bytes, only the message type can be checked.
  if (first.length < 6) return 'RENv'.includes(first.toString('latin1', 0, 1))
  const length = first.readUInt32BE(1)
  if (length < 5 || length > MESSAGE_BYTES_MAX) return false
  const code = first.toString('latin1', 0, 1)
  if (code === 'R') return first.length >= 9 && first.readUInt32BE(5) <= 12
  // The first field of an error or a notice is the severity.
  return code === 'v' || ((code === 'E' || code === 'N') && first[5] === 0x53)
}
