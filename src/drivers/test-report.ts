// What `test` answers with, from its steps: the worst of them is the grade, and one that fails is the error.
import type { TestReport, TestStep } from './driver.ts'

/** `latencyMs`: of one round trip; at least 1 is told. */
export function reportOf(steps: readonly TestStep[], latencyMs: number, serverVersion: string | null): TestReport {
  const failed = steps.find((step) => step.status === 'FAIL')
  const warned = steps.some((step) => step.status === 'WARN')
  const about = { latencyMs: Math.max(1, Math.round(latencyMs)), serverVersion, steps }
  if (failed !== undefined) return { ok: false, ...about, grade: 'FAIL', error: failed.message }
  return { ok: true, ...about, grade: warned ? 'WARN' : 'PASS' }
}
