// The exposure that a person is editing: the saved version at the start, and the person's choice. If somebody else
// saves a version meanwhile and the person has changed nothing, the new version replaces the choice.
import { useEffect, useMemo, useState } from 'react'
import { call } from '../../../api/client.ts'
import { isCode, Refused } from '../../../api/failure.ts'
import { queryClient } from '../../../api/queries.ts'
import type { Datasource } from '../../../api/types.ts'
import {
  apply,
  choiceOf,
  differenceOf,
  isEmpty,
  tablesOf,
  type Choice,
  type Difference,
  type Exposure,
} from './choice.ts'

interface Base {
  readonly version: number
  readonly choice: Choice
}

/** A newer version that somebody else saved. */
export interface Conflict {
  readonly version: number | null
  readonly author: string | null
  readonly savedAt: string | null
}

export interface Draft {
  readonly base: Base
  readonly choice: Choice
  readonly difference: Difference
  readonly isChanged: boolean
  readonly conflict: Conflict | null
  set(choice: Choice): void
  discard(): void
  /** Saves the choice. After a conflict, sets `conflict` and returns null. Throws Refused for other refusals. */
  save(note: string): Promise<Exposure | null>
  theirs(): Promise<Difference>
  /** Takes over the version that somebody else saved, and reapplies the changes made here. */
  putOnTop(): Promise<void>
}

const baseOf = ({ version, tables }: Exposure): Base => ({ version, choice: choiceOf(tables) })

export function useDraft({ teamId, id }: Datasource, saved: Exposure): Draft {
  const [base, setBase] = useState(() => baseOf(saved))
  const [choice, setChoice] = useState(base.choice)
  const [conflict, setConflict] = useState<Conflict | null>(null)
  const difference = useMemo(() => differenceOf(base.choice, choice), [base, choice])
  const isChanged = !isEmpty(difference)
  const restart = (exposure: Exposure) => {
    const next = baseOf(exposure)
    setBase(next)
    setChoice(next.choice)
    setConflict(null)
  }
  useEffect(() => {
    if (!isChanged && saved.version > base.version) restart(saved)
  }, [saved, isChanged, base.version])
  const params = { teamId, id }
  return {
    base,
    choice,
    difference,
    isChanged,
    conflict,
    set: setChoice,
    discard() {
      setChoice(base.choice)
      setConflict(null)
    },
    async save(note) {
      const body = { tables: tablesOf(choice), version: base.version, ...(note === '' ? {} : { note }) }
      try {
        const exposure = await call('putExposure', { params, body })
        restart(exposure)
        void queryClient.invalidateQueries()
        return exposure
      } catch (error) {
        if (!(error instanceof Refused) || !isCode(error, 'CONFLICT')) throw error
        setConflict(conflictOf(error))
        return null
      }
    },
    async theirs() {
      return differenceOf(base.choice, choiceOf((await call('getExposure', { params })).tables))
    },
    async putOnTop() {
      const next = baseOf(await call('getExposure', { params }))
      setBase(next)
      setChoice(apply(next.choice, difference))
      setConflict(null)
    },
  }
}

function conflictOf({ body }: Refused): Conflict {
  const { version, author, savedAt } = body
  const hasName = typeof author === 'object' && author !== null && 'name' in author
  return {
    version: typeof version === 'number' ? version : null,
    author: hasName && typeof author.name === 'string' ? author.name : null,
    savedAt: typeof savedAt === 'string' ? savedAt : null,
  }
}
