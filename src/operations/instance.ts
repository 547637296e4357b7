// Tells the console what this installation allows.
import { oidcNameOf, VERSION, type Config } from '../config.ts'
import type { Mail } from '../mail/send-mail.ts'
import type { Definitions } from './operation-types.ts'

interface Deps {
  readonly config: Config
  readonly mail: Pick<Mail, 'isOn'>
  readonly origin: () => string
}

export function instanceOperations({ config, mail, origin }: Deps): Pick<Definitions, 'getInstance'> {
  return {
    getInstance: async () => ({
      version: VERSION,
      publicUrl: origin(),
      mail: mail.isOn,
      model: config.model !== null,
      signUp: config.signup,
      ...oidcNameOf(config),
      allows: {
        privateHosts: config.allowPrivateHosts,
        applicationDefault: config.allowApplicationDefault,
        bigqueryEndpoint: config.allowBigQueryEndpoint,
        sshTunnel: true,
      },
      ceilings: config.ceilings,
    }),
  }
}
