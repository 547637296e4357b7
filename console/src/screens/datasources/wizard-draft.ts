// The input of the wizard that connects a database, stored until the datasource exists. A reload of the page loses only
// the secrets.
import { useEffect, useRef, useState } from 'react'
import { keep, readKept } from '../../api/unsaved-input.ts'
import type { Reach } from './AccessChoice.tsx'
import { fieldsFrom, NO_FIELDS, withoutSecrets, type Fields } from './connection-form.ts'

export interface Draft {
  readonly fields: Fields
  readonly name: string
  readonly reach: Reach
}

const EMPTY: Draft = { fields: NO_FIELDS, name: '', reach: { accessMode: 'ROLE_BASED', minRole: 'MEMBER' } }
const SETTLE_MS = 250

export function useConnectDraft(teamId: string) {
  const place = `connect.${teamId}`
  const [draft, setDraft] = useState(() => draftFrom(readKept(place)))
  const isOver = useRef(false)
  useEffect(() => {
    if (draft === EMPTY || isOver.current) return undefined
    const write = () => {
      if (!isOver.current) keep(place, { ...draft, fields: withoutSecrets(draft.fields) })
    }
    const timer = setTimeout(write, SETTLE_MS)
    addEventListener('pagehide', write)
    return () => {
      clearTimeout(timer)
      removeEventListener('pagehide', write)
    }
  }, [place, draft])
  return {
    draft,
    change: (part: Partial<Draft>) => setDraft((before) => ({ ...before, ...part })),
    /** Deletes the stored input, because the datasource exists. */
    forget: () => {
      isOver.current = true
      keep(place, null)
    },
  }
}

function draftFrom(kept: unknown): Draft {
  if (typeof kept !== 'object' || kept === null || !('fields' in kept)) return EMPTY
  const name = 'name' in kept && typeof kept.name === 'string' ? kept.name : ''
  return { fields: fieldsFrom(kept.fields), name, reach: reachFrom('reach' in kept ? kept.reach : null) }
}

function reachFrom(kept: unknown): Reach {
  if (typeof kept !== 'object' || kept === null || !('accessMode' in kept) || !('minRole' in kept)) return EMPTY.reach
  const role = (['MEMBER', 'ADMIN', 'OWNER'] as const).find((each) => each === kept.minRole) ?? EMPTY.reach.minRole
  return { accessMode: kept.accessMode === 'EXPLICIT' ? 'EXPLICIT' : 'ROLE_BASED', minRole: role }
}
