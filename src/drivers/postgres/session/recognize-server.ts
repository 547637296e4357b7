// Recognizes PostgreSQL by the first bytes of a server, so that a login at a wrong port fails with a clear error.
import { AppError } from '../../../errors.ts'

const OTHER = 'The server at that host and port is not PostgreSQL.'
const SILENT = 'The server at that host and port accepts the connection but does not answer like PostgreSQL.'
const MESSAGE_BYTES_MAX = 16 << 10

export interface FirstAnswer {
  /** Receives each chunk before `pg` does. */
  hear(bytes: Buffer): void
  /** Returns the error of a failed login, or a clearer one if the first bytes are not from PostgreSQL. */
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

/** Returns whether the bytes may answer the request for TLS: one letter, or an error of a server without TLS. */
function isAnswerToTls(first: Buffer): boolean {
  return first.length === 1 ? first[0] === 0x53 || first[0] === 0x4e : first[0] === 0x45 && isLogin(first)
}

/** Returns whether the bytes may begin a login message. Not the first byte alone: MySQL's may be any letter. */
function isLogin(first: Buffer): boolean {
  // Fewer bytes show only the type of the message.
  if (first.length < 6) return 'RENv'.includes(first.toString('latin1', 0, 1))
  const length = first.readUInt32BE(1)
  if (length < 5 || length > MESSAGE_BYTES_MAX) return false
  const code = first.toString('latin1', 0, 1)
  if (code === 'R') return first.length >= 9 && first.readUInt32BE(5) <= 12
  // An error or a notice begins with its severity (field S).
  return code === 'v' || ((code === 'E' || code === 'N') && first[5] === 0x53)
}
