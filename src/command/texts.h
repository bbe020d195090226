/* Error texts that two folders share: keyspace/ runs INCR, and absorb/fold computes the replies of
 * combined INCRs. The words are Redis's: clients parse them. */
#ifndef HS_COMMAND_TEXTS_H
#define HS_COMMAND_TEXTS_H

#define HS_TEXT_NOT_INTEGER "ERR value is not an integer or out of range"
#define HS_TEXT_ADD_OVERFLOW "ERR increment or decrement would overflow"

#endif
