import { Check } from 'lucide-react'
import { Icon } from '../../parts/Icon.tsx'

const STEPS = ['Database', 'Connection', 'Check', 'Tables'] as const

/** `at` is the number of the current step, from 1. */
export function ConnectSteps({ at }: { readonly at: 2 | 3 | 4 }) {
  return (
    <ol className="steps" aria-label={`Step ${at} of 4`}>
      {STEPS.map((step, n) => (
        <li key={step} aria-current={n + 1 === at ? 'step' : undefined} data-done={n + 1 < at ? '' : undefined}>
          <span className="step-number" aria-hidden>
            {n + 1 < at ? <Icon of={Check} /> : n + 1}
          </span>
          {step}
        </li>
      ))}
    </ol>
  )
}
