/* An intrusive doubly linked ring. The list head is a link, too; an empty list points at itself. The list owns
 * no entry. One thread. */
#ifndef HS_BASE_LIST_H
#define HS_BASE_LIST_H

#include <stdbool.h>
#include <stddef.h>

struct hs_link {
	struct hs_link *next;
	struct hs_link *prev;
};

#define hs_list_entry(link, type, member) ((type *)((char *)(link)-offsetof(type, member)))

/* NULL: the list is empty. */
#define hs_list_first(list, type, member)                                                          \
	(hs_list_empty(list) ? NULL : hs_list_entry((list)->next, type, member))

/* Walks a list from first to last. The body must not remove `entry`. */
#define hs_list_each(type, entry, list, member)                                                    \
	for (type *entry = hs_list_entry((list)->next, type, member); &(entry)->member != (list);  \
	     entry = hs_list_entry((entry)->member.next, type, member))

/* The same; the body may remove and free `entry`. */
#define hs_list_each_safe(type, entry, list, member)                                               \
	for (type *entry = hs_list_entry((list)->next, type, member),                              \
		  *entry##_next = hs_list_entry((entry)->member.next, type, member);               \
	     &(entry)->member != (list); entry = entry##_next,                                     \
		  entry##_next = hs_list_entry((entry)->member.next, type, member))

static inline void hs_list_init(struct hs_link *list)
{
	list->next = list;
	list->prev = list;
}

static inline bool hs_list_empty(const struct hs_link *list)
{
	return list->next == list;
}

static inline void hs_list_append(struct hs_link *list, struct hs_link *link)
{
	link->prev = list->prev;
	link->next = list;
	list->prev->next = link;
	list->prev = link;
}

/* After this the link is a list of itself, so removing it twice is harmless. */
static inline void hs_list_remove(struct hs_link *link)
{
	link->prev->next = link->next;
	link->next->prev = link->prev;
	hs_list_init(link);
}

#endif
