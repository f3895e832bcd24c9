/*
 * control.h - the server's control thread, in three files.
 */
#ifndef TSI_SERVE_CONTROL_H
#define TSI_SERVE_CONTROL_H

#include "serve/server.h"

/*
 * messages.c: read messages and answer them.  The lock is taken anew for each
 * message, so that a flood of messages does not hold up the workers.
 */
void tsi_messages_answer(struct tsock_server *s);

/* The rest is called with the lock held. */
struct tsi_offer *tsi_offer_of(struct tsock_server *s, const uint8_t *token);
void tsi_offer_forget(struct tsock_server *s, struct tsi_offer *o);
void tsi_offers_expire(struct tsock_server *s, int64_t now_ms);
struct tsi_join tsi_offer_rules(const struct tsi_msg_join *join, unsigned view);

/* handshake.c: accept connections, and read the tokens that came on them. */
void tsi_handshake_serve(struct tsock_server *s, int64_t now_ms);

#endif
