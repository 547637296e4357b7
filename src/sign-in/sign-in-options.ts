// Anybody may read what the sign-in pages need to know. About accounts, this is only whether there is one at all.
import type { z } from 'zod'
import type { SignInOptions } from '../contract/instance-schemas.ts'
import { PASSWORD } from '../contract/sign-in-routes.ts'
import { oidcNameOf, type Config } from '../config.ts'
import type { Mail } from '../mail/send-mail.ts'
import { passkeyPlace } from './passkey-host.ts'
import { isEmpty, neededSetupToken } from './sign-up.ts'

type Deps = Parameters<typeof neededSetupToken>[0] & {
  readonly mail: Pick<Mail, 'isOn'>
  readonly config: Parameters<typeof passkeyPlace>[0] & Pick<Config, 'providers'>
}

export async function signInOptions(deps: Deps, request: Pick<Request, 'url'>): Promise<z.input<typeof SignInOptions>> {
  return {
    firstAccount: await isEmpty(deps.store),
    setupTokenNeeded: (await neededSetupToken(deps)) !== null,
    signUp: deps.config.signup,
    mail: deps.mail.isOn,
    password: { ...PASSWORD },
    methods: [
      'password',
      ...(passkeyPlace(deps.config, request) === null ? [] : ['passkey' as const]),
      ...deps.config.providers.map(({ id }) => id),
    ],
    ...oidcNameOf(deps.config),
  }
}
