/*
 * desk.h - what the server's own thread does, in three files.
 */
#ifndef TSI_SERVE_DESK_H
#define TSI_SERVE_DESK_H

#include "serve/server.h"

/* mail.c: read and answer.  Takes the lock for each message: a flood must not
 * keep it. */
void tsi_mail_read(struct tsock_server *s);

/* The rest is called with the lock held. */
struct tsi_offer *tsi_offer_of(struct tsock_server *s, const uint8_t *token);
void tsi_offer_forget(struct tsock_server *s, struct tsi_offer *o);
void tsi_offers_expire(struct tsock_server *s, int64_t now_ms);
struct tsi_join tsi_offer_rules(const struct tsi_msg_join *join, unsigned view);

/* guests.c: let in who is at the door, and hear those who are inside. */
void tsi_guests_serve(struct tsock_server *s, int64_t now_ms);

#endif
