// The ways to sign in without a password that this service offers.
import { useRouter } from '@tanstack/react-router'
import { KeyRound, LogIn } from 'lucide-react'
import type { ReactNode } from 'react'
import { auth } from '../../api/client.ts'
import type { Method } from '../../api/sign-in-options.ts'
import type { AuthAnswer, AuthBody } from '../../api/types.ts'
import { nextPath } from '../../frame/return-path.ts'
import { Button } from '../../parts/Button.tsx'
import { Icon } from '../../parts/Icon.tsx'
import { Failure } from '../../parts/Notice.tsx'
import { useAction } from '../../parts/useAction.ts'
import { enter } from './after-sign-in.ts'
import { signInWithPasskey } from './passkey.ts'
import { named, providerName } from './provider-failure.ts'

type Order = AuthBody<'POST /auth/sign-in/provider'>
type Provider = Order['provider']
type User = AuthAnswer<'POST /auth/passkey/sign-in'>['user']

interface OtherWaysProps {
  readonly methods: readonly Method[]
  readonly oidcName: string | undefined
  readonly next: string | undefined
  readonly rememberMe?: boolean
  /** The token that allows a sign-up. */
  readonly tokens?: Pick<Order, 'setupToken' | 'inviteToken'>
  /** Called after a sign-in with a passkey, instead of opening `next`. */
  readonly onPasskey?: (user: User) => void
}

export const PROVIDERS = ['github', 'google', 'oidc'] as const

export function OtherWays({ methods, oidcName, next, rememberMe = true, tokens = {}, onPasskey }: OtherWaysProps) {
  const providers = PROVIDERS.filter((provider) => methods.includes(provider))
  const passkey = methods.includes('passkey')
  if (providers.length === 0 && !passkey) return null
  return (
    <>
      <div className="or">or</div>
      <div className="stack close">
        {passkey && <Passkey next={next} rememberMe={rememberMe} onPasskey={onPasskey} />}
        {providers.map((provider) => (
          <Away
            key={provider}
            name={providerName(provider, oidcName)}
            order={{ provider, rememberMe, ...tokens, callbackURL: nextPath(next) ?? '/app/' }}
          />
        ))}
      </div>
    </>
  )
}

function Passkey({
  next,
  rememberMe,
  onPasskey,
}: {
  readonly next: string | undefined
  readonly rememberMe: boolean
  readonly onPasskey: ((user: User) => void) | undefined
}) {
  const router = useRouter()
  const action = useAction(async () => {
    const user = await signInWithPasskey(rememberMe)
    if (onPasskey === undefined) await enter(router, next)
    else onPasskey(user)
  })
  return (
    <>
      <Button wide icon={KeyRound} busy={action.busy} onClick={action.run}>
        Continue with passkey
      </Button>
      <Failure of={action.error} />
    </>
  )
}

/** Opens the page of a provider, which redirects back. */
function Away({ name, order }: { readonly name: string; readonly order: Order }) {
  const action = useAction(async () => {
    const { url } = await auth('POST /auth/sign-in/provider', order).catch((error: unknown) => {
      throw named(error, name)
    })
    location.assign(url)
  })
  return (
    <>
      <Button wide busy={action.busy} onClick={action.run}>
        <ProviderIcon of={order.provider} />
        <span>
          Continue with <bdi>{name}</bdi>
        </span>
      </Button>
      <Failure of={action.error} />
    </>
  )
}

export function ProviderIcon({ of }: { readonly of: Provider }): ReactNode {
  if (of === 'github') return <GitHub />
  return of === 'google' ? <Google /> : <Icon of={LogIn} />
}

const GitHub = () => (
  <svg className="icon" viewBox="0 0 16 16" aria-hidden>
    <path
      fill="currentColor"
      d="M8 .2a8 8 0 0 0-2.53 15.6c.4.07.55-.18.55-.39l-.01-1.36c-2.23.48-2.7-1.08-2.7-1.08-.36-.92-.89-1.17-.89-1.17-.73-.5.05-.49.05-.49.8.06 1.23.83 1.23.83.72 1.22 1.88.87 2.34.66.07-.52.28-.87.5-1.07-1.77-.2-3.64-.89-3.64-3.95 0-.87.31-1.59.82-2.15-.08-.2-.35-1.01.08-2.11 0 0 .67-.22 2.2.82a7.6 7.6 0 0 1 4 0c1.53-1.04 2.2-.82 2.2-.82.43 1.1.16 1.91.08 2.11.51.56.82 1.28.82 2.15 0 3.07-1.87 3.75-3.65 3.95.29.25.54.73.54 1.48l-.01 2.2c0 .21.15.46.55.38A8 8 0 0 0 8 .2Z"
    />
  </svg>
)

const Google = () => (
  <svg className="icon" viewBox="0 0 16 16" aria-hidden>
    <path fill="#4285f4" d="M15.7 8.2c0-.6 0-1-.1-1.5H8v2.8h4.3a3.7 3.7 0 0 1-1.6 2.4v2h2.6c1.5-1.4 2.4-3.4 2.4-5.7Z" />
    <path fill="#34a853" d="M8 16c2.2 0 4-.7 5.3-1.9l-2.6-2a4.8 4.8 0 0 1-7.2-2.5H.8v2.1A8 8 0 0 0 8 16Z" />
    <path fill="#fbbc05" d="M3.5 9.6a4.8 4.8 0 0 1 0-3.1V4.4H.8a8 8 0 0 0 0 7.2l2.7-2Z" />
    <path fill="#ea4335" d="M8 3.2c1.2 0 2.3.4 3.1 1.2l2.3-2.3A8 8 0 0 0 .8 4.4l2.7 2.1A4.8 4.8 0 0 1 8 3.2Z" />
  </svg>
)
