// A label for a state. The colour repeats what the text says.
import { AlertTriangle, Check, Circle, CircleDot, Pause, X, type LucideIcon } from 'lucide-react'
import type { ReactNode } from 'react'
import { classes } from './class-names.ts'
import { Icon } from './Icon.tsx'

export type Tone = 'ok' | 'warn' | 'bad' | 'accent' | 'none'

export function Tag({
  tone = 'none',
  icon,
  bare = false,
  children,
}: {
  readonly tone?: Tone
  readonly icon?: LucideIcon
  /** Without a background, for dense tables. */ readonly bare?: boolean
  readonly children: ReactNode
}) {
  return (
    <span className={classes('tag', tone !== 'none' && tone, bare && 'bare')}>
      {icon !== undefined && <Icon of={icon} />}
      {children}
    </span>
  )
}

/** Shows scopes, types and columns in a code font. */
export const CodeTag = ({ children }: { readonly children: ReactNode }) => (
  <code className="tag tag-code">{children}</code>
)

const STATES = {
  ANSWERED: ['ok', Check, 'Answered'],
  DENIED: ['bad', X, 'Refused'],
  FAILED: ['warn', AlertTriangle, 'Failed'],
  PENDING: ['none', Circle, 'Pending'],
  CONNECTED: ['ok', CircleDot, 'Connected'],
  ERROR: ['bad', AlertTriangle, 'Error'],
  DISABLED: ['none', Pause, 'Disabled'],
} as const satisfies Record<string, readonly [Tone, LucideIcon, string]>

/** Shows the state of a call or a datasource. */
export function State({ of, bare = true }: { readonly of: keyof typeof STATES; readonly bare?: boolean }) {
  const [tone, icon, word] = STATES[of]
  return (
    <Tag tone={tone} icon={icon} bare={bare}>
      {word}
    </Tag>
  )
}
