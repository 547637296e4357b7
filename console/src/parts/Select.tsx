import { Select as Base } from '@base-ui/react/select'
import { Check, ChevronsUpDown } from 'lucide-react'
import { classes } from './class-names.ts'
import { FieldFrame, useLabelled, type Labelled } from './Field.tsx'
import { Icon } from './Icon.tsx'

export interface Option<V extends string> {
  readonly value: V
  readonly label: string
  readonly note?: string
}

interface SelectProps<V extends string> extends Labelled {
  readonly options: readonly Option<V>[]
  readonly value: V
  readonly onChange: (value: V) => void
  readonly disabled?: boolean
  /** If set, the label is invisible, and only the accessible name. */
  readonly bare?: boolean
  readonly name?: string
}

export function Select<V extends string>({ bare = false, ...props }: SelectProps<V>) {
  const { label, note, error } = props
  const { id, control } = useLabelled({ label, note, error })
  if (bare) return <List {...props} control={control} naming={{ 'aria-label': label }} compact />
  return (
    <FieldFrame {...{ id, label, note, error }}>
      <List {...props} control={control} naming={{ 'aria-labelledby': `${id}-label` }} />
    </FieldFrame>
  )
}

interface ListProps<V extends string> extends SelectProps<V> {
  readonly control: ReturnType<typeof useLabelled>['control']
  readonly naming: { readonly 'aria-label'?: string; readonly 'aria-labelledby'?: string }
  readonly compact?: boolean
}

function List<V extends string>({ options, value, onChange, disabled, name, control, naming, compact }: ListProps<V>) {
  return (
    <Base.Root
      items={[...options]}
      value={value}
      onValueChange={(next) => next !== null && onChange(next)}
      disabled={disabled}
      name={name}
    >
      <Base.Trigger {...control} {...naming} className={classes('select', compact === true && 'compact')}>
        <Base.Value />
        <Icon of={ChevronsUpDown} />
      </Base.Trigger>
      <Base.Portal>
        <Base.Positioner className="positioner" sideOffset={4} alignItemWithTrigger={false}>
          <Base.Popup className="popup">
            <Base.List>
              {options.map((option) => (
                <Base.Item key={option.value} value={option.value} className="item">
                  <span className="item-check">
                    <Base.ItemIndicator>
                      <Icon of={Check} />
                    </Base.ItemIndicator>
                  </span>
                  <Base.ItemText>{option.label}</Base.ItemText>
                  {option.note !== undefined && <span className="item-end">{option.note}</span>}
                </Base.Item>
              ))}
            </Base.List>
          </Base.Popup>
        </Base.Positioner>
      </Base.Portal>
    </Base.Root>
  )
}
