// A button, or a link that looks like a button. A `busy` button keeps its label and ignores clicks.
import { Link, type LinkProps } from '@tanstack/react-router'
import type { LucideIcon } from 'lucide-react'
import type { ButtonHTMLAttributes, MouseEvent, ReactNode, Ref } from 'react'
import { classes } from './class-names.ts'
import { Icon } from './Icon.tsx'

interface Look {
  /** `destroy`: the final button of a deletion. */
  readonly look?: 'primary' | 'danger' | 'destroy' | 'quiet'
  readonly small?: boolean
  readonly wide?: boolean
  readonly icon?: LucideIcon
  readonly className?: string
}

interface ButtonProps extends Omit<ButtonHTMLAttributes<HTMLButtonElement>, keyof Look>, Look {
  readonly busy?: boolean
  readonly ref?: Ref<HTMLButtonElement>
}

export function Button({ look, small, wide, icon, busy, className, children, onClick, ...rest }: ButtonProps) {
  const ignore = (event: MouseEvent<HTMLButtonElement>) => event.preventDefault()
  return (
    <button
      type="button"
      {...rest}
      aria-disabled={busy === true ? true : undefined}
      onClick={busy === true ? ignore : onClick}
      className={lookOf({ look, small, wide, className })}
    >
      {busy === true ? <span className="spinner" aria-hidden /> : icon !== undefined && <Icon of={icon} />}
      {children}
    </button>
  )
}

/** A button that shows only an icon. The label is its accessible name and its tooltip. */
export function IconButton({
  label,
  icon,
  small,
  ...rest
}: ButtonProps & { readonly label: string; readonly icon: LucideIcon }) {
  return (
    <Button look="quiet" {...rest} small={small} className="square" aria-label={label} title={label}>
      <Icon of={icon} />
    </Button>
  )
}

export function LinkButton({
  look,
  small,
  wide,
  icon,
  className,
  children,
  ...rest
}: LinkProps & Look & { readonly children: ReactNode }) {
  return (
    <Link {...rest} className={lookOf({ look, small, wide, className })}>
      {icon !== undefined && <Icon of={icon} />}
      {children}
    </Link>
  )
}

type LookOf = { readonly [K in 'look' | 'small' | 'wide' | 'className']?: Look[K] | undefined }

function lookOf({ look, small, wide, className }: LookOf): string {
  return classes('button', look, small === true && 'small', wide === true && 'wide', className)
}
