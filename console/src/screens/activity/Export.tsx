// Saves all calls that the filters match as a file.
import { Download } from 'lucide-react'
import { useRef } from 'react'
import { respond } from '../../api/client.ts'
import { useTeam } from '../../frame/current-team.ts'
import { Button } from '../../parts/Button.tsx'
import { saveFile } from '../../parts/save-file.ts'
import { Menu, MenuItem } from '../../parts/Menu.tsx'
import { Failure } from '../../parts/Notice.tsx'
import { say } from '../../parts/StatusMessages.tsx'
import { useAction } from '../../parts/useAction.ts'
import { useAuditQuery, useFilters } from './filters.ts'

export function Export() {
  const team = useTeam()
  const query = useAuditQuery(useFilters().filters)
  const format = useRef<'csv' | 'jsonl'>('csv')
  const save = useAction(async () => {
    const answer = await respond('exportAudit', {
      params: { teamId: team.id },
      query: { ...query, format: format.current },
    })
    saveFile(`${team.slug}-activity.${format.current}`, await answer.blob())
    say('Exported')
  })
  const start = (next: 'csv' | 'jsonl') => {
    format.current = next
    save.run()
  }
  return (
    <>
      <Menu
        align="end"
        trigger={
          <Button icon={Download} busy={save.busy}>
            Export
          </Button>
        }
      >
        <MenuItem onSelect={() => start('csv')}>CSV</MenuItem>
        <MenuItem onSelect={() => start('jsonl')}>JSON lines</MenuItem>
      </Menu>
      <Failure of={save.error} />
    </>
  )
}
