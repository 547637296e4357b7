// Shows a refusal: the blocked object, and what to write instead. With a button, a member can ask for the exposure of a
// table or column. For an admin, the button opens the exposure.
import { useNavigate } from '@tanstack/react-router'
import { Eye } from 'lucide-react'
import { Refused } from '../../api/failure.ts'
import { call } from '../../api/client.ts'
import { hasRole, useTeam } from '../../frame/current-team.ts'
import { Button } from '../../parts/Button.tsx'
import { Failure, Notice } from '../../parts/Notice.tsx'
import { useAction } from '../../parts/useAction.ts'
import { LongText } from '../../parts/UntrustedText.tsx'
import { AskForExposure } from '../requests/AskForExposure.tsx'
import type { Ran } from './useRun.ts'
import type { Verdict } from './useVerdict.ts'

export interface Told {
  readonly sentence: string
  readonly hint: string | null
  readonly position: number | undefined
  /** A table or column can be exposed; a function or a limit cannot. */
  readonly canBeExposed: boolean
}

/** Returns the refusal in a verdict or a run, or null if the query was not refused. */
export function refusalOf(from: unknown): Told | null {
  if (from instanceof Refused)
    return from.code === 'QUERY_DENIED' || from.code === 'INVALID_QUERY' ? toldOf(from.message, from.body) : null
  if (!isVerdict(from) || from.verdict === 'ALLOWED') return null
  return toldOf(from.error ?? 'This query is refused.', { ...from })
}

const isVerdict = (value: unknown): value is Verdict =>
  typeof value === 'object' && value !== null && 'verdict' in value

function toldOf(sentence: string, { hint, position, blocked }: Readonly<Record<string, unknown>>): Told {
  const kind = typeof blocked === 'object' && blocked !== null && 'kind' in blocked ? blocked.kind : ''
  return {
    sentence,
    hint: typeof hint === 'string' ? hint : null,
    position: typeof position === 'number' ? position : undefined,
    canBeExposed: kind === 'table' || kind === 'column',
  }
}

interface RefusalProps {
  readonly refusal: Told
  readonly at: { readonly teamId: string; readonly id: string }
  readonly ran: Ran | null
  /** Runs the query, so that the refusal is recorded in the audit. */
  readonly run: () => Promise<Ran | null>
}

export function Refusal({ refusal, at, ran, run }: RefusalProps) {
  const team = useTeam()
  const navigate = useNavigate()
  const refused = async () => {
    if (ran === null) await run()
    return newestRefusal(at)
  }
  const expose = useAction(async () => {
    await navigate({
      to: '/t/$team/datasources/$id/exposure',
      params: { team: team.slug, id: at.id },
      search: { from: await refused() },
    })
  })
  return (
    <div className="stack close">
      <Notice tone="bad">
        <LongText>{refusal.sentence}</LongText>
        {refusal.hint !== null && (
          <p>
            <LongText>{refusal.hint}</LongText>
          </p>
        )}
        {refusal.canBeExposed && (
          <div className="notice-acts">
            {hasRole(team, 'ADMIN') ? (
              <Button small icon={Eye} busy={expose.busy} onClick={expose.run}>
                Expose from this
              </Button>
            ) : (
              <AskForExposure key={refusal.sentence} at={at} refused={refused} />
            )}
          </div>
        )}
      </Notice>
      <Failure of={expose.error} />
    </div>
  )
}

/** Returns the audit id of the person's newest refused query on this datasource. */
async function newestRefusal({ id }: RefusalProps['at']): Promise<string> {
  const { items } = await call('listActivity', {
    query: { datasourceId: id, action: 'runQuery', outcome: 'DENIED', limit: 1 },
  })
  const [newest] = items
  if (newest === undefined) throw new Error('the refusal is not in the audit')
  return newest.id
}
