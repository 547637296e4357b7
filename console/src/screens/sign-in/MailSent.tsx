// The page after a sign-up if mail is on: the address must be verified first.
import { Link } from '@tanstack/react-router'
import { MailCheck } from 'lucide-react'
import { auth } from '../../api/client.ts'
import { CardPage } from '../../frame/CardPage.tsx'
import { Button } from '../../parts/Button.tsx'
import { Failure, Notice } from '../../parts/Notice.tsx'
import { say } from '../../parts/StatusMessages.tsx'
import { useAction } from '../../parts/useAction.ts'

export function MailSent({ email }: { readonly email: string }) {
  const again = useAction(async () => {
    await auth('POST /auth/send-verification-email', { email, callbackURL: '/app/sign-in' })
    say('Sent again')
  })
  return (
    <CardPage title="Check your mail">
      <Notice role="status">
        A link is on its way to <bdi>{email}</bdi>. It is valid for an hour.
      </Notice>
      <Failure of={again.error} />
      <Button wide icon={MailCheck} busy={again.busy} onClick={again.run}>
        Send it again
      </Button>
      <div className="outside-foot">
        <Link to="/sign-in">Sign in</Link>
      </div>
    </CardPage>
  )
}
