// Builds the report of a connection test. Its grade is that of the worst step, and its error is the message of the
// first failed step.
import type { TestReport, TestStep } from './driver.ts'

/** `latencyMs` is the time of one round trip. The report has at least 1. */
export function reportOf(steps: readonly TestStep[], latencyMs: number, serverVersion: string | null): TestReport {
  const failed = steps.find((step) => step.status === 'FAIL')
  const warned = steps.some((step) => step.status === 'WARN')
  const rest = { latencyMs: Math.max(1, Math.round(latencyMs)), serverVersion, steps }
  if (failed !== undefined) return { ok: false, ...rest, grade: 'FAIL', error: failed.message }
  return { ok: true, ...rest, grade: warned ? 'WARN' : 'PASS' }
}

export function pass(name: string, message: string, advice: string | null = null): TestStep {
  return { name, status: 'PASS', message, remedy: advice }
}

export function warn(name: string, message: string, remedy: string): TestStep {
  return { name, status: 'WARN', message, remedy }
}

/** Returns "a, b, c and 4 more", for a message. */
export function few(names: readonly string[]): string {
  const more = names.length - 3
  return more > 0 ? `${names.slice(0, 3).join(', ')} and ${more} more` : names.join(', ')
}
