// Reports a defect of a guard that a query has revealed. The report has a sentence and a hash of the query's text, but
// not the text.
import { createHash } from 'node:crypto'

/** `hash` is the SHA-256 of the query's text in hexadecimal. */
export type TellDefect = (problem: string, hash: string) => void

export type ReportDefect = (problem: string, text: string) => void

export function defectReporter(tell: TellDefect = toStandardError): ReportDefect {
  return (problem, text) => {
    tell(problem, createHash('sha256').update(text).digest('hex'))
  }
}

function toStandardError(problem: string, hash: string): void {
  process.stderr.write(`${JSON.stringify({ level: 'error', room: 'guard', problem, sha256: hash })}\n`)
}
