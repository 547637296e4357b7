// What our mails say: short, in plain text and the same as simple HTML. A subject is always a constant of ours; what
// others wrote stands in the text only, on one line and without an address to click on.

/** A line of text, or what is to be clicked or copied. */
type Paragraph = string | { readonly link: string } | { readonly copy: string }

export interface Letter {
  readonly kind: 'verification' | 'password reset' | 'invitation' | 'signed up again' | 'key expiring'
  /** One address, as a schema let it pass. */
  readonly to: string
  readonly subject: string
  readonly body: readonly Paragraph[]
  /** What its reader cannot do without: it goes to the log where no mail is sent. */
  readonly link?: string
}

export function verificationLetter(to: string, link: string): Letter {
  return {
    kind: 'verification',
    to,
    link,
    subject: 'Verify your e-mail address',
    body: [
      'Somebody, you we hope, signed up to Vitrine with this e-mail address. Open this link within an hour to verify it:',
      { link },
      'If it was not you, do not open it: without it nobody can use this address.',
    ],
  }
}

export function resetLetter(to: string, link: string): Letter {
  return {
    kind: 'password reset',
    to,
    link,
    subject: 'Set a new password',
    body: [
      'Somebody, you we hope, asked for a new password for your Vitrine account. Open this link within an hour to set one:',
      { link },
      'A new password ends all sessions. If it was not you, do nothing: your password stays as it is.',
    ],
  }
}

/** To whoever owns an address that was signed up with a second time. */
export function signedUpAgainLetter(to: string, origin: string): Letter {
  return {
    kind: 'signed up again',
    to,
    subject: 'You have an account already',
    body: [
      `Somebody, you we hope, signed up to Vitrine at ${origin} with this e-mail address, which has an account already.`,
      'If it was you: sign in, or ask for a new password. If it was not you, do nothing: nothing was changed.',
    ],
  }
}

export interface Invite {
  readonly to: string
  readonly origin: string
  readonly team: string
  /** The address of whoever invites. */
  readonly by: string
  readonly role: string
  /** null for a member already, who only has to open the team. */
  readonly token: string | null
}

export function invitationLetter({ to, origin, team, by, role, token }: Invite): Letter {
  const start = `${plain(by)} invited you to the team “${plain(team)}” in Vitrine, as ${role}.`
  const end = 'If you do not know them, do nothing.'
  const how =
    token === null
      ? [`Sign in at ${origin} and open the team.`]
      : [
          `Sign in at ${origin} with this e-mail address, or sign up with it, and accept the invitation within 14 days:`,
          { copy: `POST ${origin}/invitations/${token}/accept` },
          'Where signing up asks for an inviteToken, it is this:',
          { copy: token },
        ]
  return { kind: 'invitation', to, subject: 'You are invited to a team', body: [start, ...how, end] }
}

export interface EndingKey {
  readonly to: string
  readonly origin: string
  readonly name: string
  readonly hint: string
  readonly expiresAt: string
}

export function keyExpiringLetter({ to, origin, name, hint, expiresAt }: EndingKey): Letter {
  return {
    kind: 'key expiring',
    to,
    subject: 'An API key ends soon',
    body: [
      `Your API key “${plain(name)}” (${hint}) at ${origin} ends at ${expiresAt}. What uses it is refused from then on.`,
      'If it is still needed, rotate it or make another one before.',
    ],
  }
}

/** The letter as text/plain. */
export function textOf({ body }: Letter): string {
  const lines = body.map((each) => (typeof each === 'string' ? each : 'link' in each ? each.link : each.copy))
  return `${lines.join('\n\n')}\n`
}

/** The letter as text/html; nothing in it is loaded from anywhere. */
export function htmlOf({ body }: Letter): string {
  const paragraphs = body.map((each) => {
    if (typeof each === 'string') return `<p>${escaped(each)}</p>`
    if ('copy' in each) return `<pre>${escaped(each.copy)}</pre>`
    return `<p><a href="${escaped(each.link)}">${escaped(each.link)}</a></p>`
  })
  return `<!doctype html><html><body>${paragraphs.join('\n')}</body></html>\n`
}

const WORDS_MAX = 80

/** What somebody else wrote, on one line and as no link: a team's name must not become an advertisement. */
function plain(text: string): string {
  const line = text.replace(/[\p{C}\p{Z}]+/gu, ' ').replace(/:\/\/|\bwww\./gi, ' ')
  return line.length <= WORDS_MAX ? line : `${line.slice(0, WORDS_MAX)}…`
}

function escaped(text: string): string {
  return text.replace(/[&<>"']/g, (letter) => `&#${letter.charCodeAt(0)};`)
}
