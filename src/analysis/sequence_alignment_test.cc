#include "analysis/sequence_alignment.h"

#include <gtest/gtest.h>

#include <random>

namespace lockstep::analysis {
namespace {

using Tokens = std::vector<SequenceToken>;

/// One token per letter; lower and upper case are loosely the same. Times count up from `time_ns`.
Tokens Spell(const std::string& letters, int64_t time_ns = 0) {
  Tokens tokens;
  for (const char c : letters) {
    SequenceToken token;
    token.exact = static_cast<uint64_t>(c);
    token.loose = static_cast<uint64_t>(std::tolower(c));
    token.time_ns = time_ns++;
    tokens.push_back(token);
  }
  return tokens;
}

using Slots = std::vector<uint32_t>;

TEST(SequenceAlignmentTest, EqualListsAreJoinedOneByOne) {
  const SequenceAlignment aligned = AlignSequences({Spell("abab"), Spell("abab")});
  EXPECT_EQ(aligned.slots[0], (Slots{0, 1, 2, 3}));
  EXPECT_EQ(aligned.slots[1], aligned.slots[0]);
  EXPECT_EQ(aligned.slot_count, 4u);
  EXPECT_FALSE(aligned.ambiguous);
}

TEST(SequenceAlignmentTest, AListThatStartsLaterIsJoinedByItsEnd) {
  const SequenceAlignment aligned = AlignSequences({Spell("abcdefgh"), Spell("cdefgh")});
  EXPECT_EQ(aligned.slots[1], (Slots{2, 3, 4, 5, 6, 7}));
}

TEST(SequenceAlignmentTest, ListsClippedAtDifferentEndsKeepTheirOrder) {
  const SequenceAlignment aligned = AlignSequences({Spell("abcdef"), Spell("cdefgh")});
  EXPECT_EQ(aligned.slots[0], (Slots{0, 1, 2, 3, 4, 5}));
  EXPECT_EQ(aligned.slots[1], (Slots{2, 3, 4, 5, 6, 7}));
  EXPECT_EQ(aligned.slot_count, 8u);
}

TEST(SequenceAlignmentTest, AMissingElementInAPeriodicListShiftsNothing) {
  const SequenceAlignment aligned = AlignSequences({Spell("abcabcabcabc"), Spell("abcabcbcabc")});
  EXPECT_EQ(aligned.slots[1], (Slots{0, 1, 2, 3, 4, 5, 7, 8, 9, 10, 11}));
  EXPECT_EQ(aligned.slot_count, 12u);
}

TEST(SequenceAlignmentTest, AnExtraElementGetsASlotOfItsOwn) {
  const SequenceAlignment aligned = AlignSequences({Spell("abcd"), Spell("abxcd"), Spell("abcd")});
  EXPECT_EQ(aligned.slots[1], (Slots{0, 1, 2, 3, 4}));
  EXPECT_EQ(aligned.slots[0], (Slots{0, 1, 3, 4}));
  EXPECT_EQ(aligned.slots[2], aligned.slots[0]);
}

TEST(SequenceAlignmentTest, ElementsThatDifferInDetailAreJoinedBetweenCommonOnes) {
  const SequenceAlignment aligned = AlignSequences({Spell("abCd"), Spell("abcd")});
  EXPECT_EQ(aligned.slots[0], aligned.slots[1]);
  EXPECT_EQ(aligned.slot_count, 4u);
}

TEST(SequenceAlignmentTest, AmongEquallyGoodAlignmentsTheNearestInTimeIsTaken) {
  const SequenceAlignment aligned = AlignSequences({Spell("aaaaaa", 100), Spell("aaa", 102)});
  EXPECT_EQ(aligned.slots[1], (Slots{2, 3, 4}));
  EXPECT_TRUE(aligned.ambiguous);
}

/// A list of tokens that end at `ends_us` on a clock that reads `offset_us` more, each 100 us long.
Tokens Ending(const std::string& letters, const std::vector<int64_t>& ends_us, int64_t offset_us = 0) {
  Tokens tokens = Spell(letters);
  for (size_t i = 0; i < tokens.size(); ++i) {
    tokens[i].time_ns = (ends_us[i] + offset_us) * 1000;
    tokens[i].start_ns = tokens[i].time_ns - 100'000;
  }
  return tokens;
}

TEST(SequenceAlignmentTest, PlacesThatTokensDoNotTellApartAreToldByEndsThatLieEquallyFarApart) {
  // Intervals of 1, 2, 1.2, 2.7, 1.1 ms; the clocks differ by more than the whole list is long.
  const SequenceAlignment aligned = AlignSequences(
      {Ending("aaaaaa", {0, 1000, 3000, 4200, 6900, 8000}), Ending("aaaa", {1000, 3000, 4200, 6900}, 50'000)});
  EXPECT_EQ(aligned.slots[1], (Slots{1, 2, 3, 4}));
  EXPECT_FALSE(aligned.ambiguous);
}

TEST(SequenceAlignmentTest, EqualListsThatBeganApartAreShifted) {
  const SequenceAlignment aligned = AlignSequences({Ending("aaaaaa", {0, 1000, 3000, 4200, 6900, 8000}),
                                                    Ending("aaaaaa", {1000, 3000, 4200, 6900, 8000, 9700}, -7'000)});
  EXPECT_EQ(aligned.slots[0], (Slots{0, 1, 2, 3, 4, 5}));
  EXPECT_EQ(aligned.slots[1], (Slots{1, 2, 3, 4, 5, 6}));
}

TEST(SequenceAlignmentTest, OfTwoEqualElementsTheOneIsJoinedThatEndsWhenItShould) {
  // As in a recording that begins within an element of which only the loose token is known.
  const SequenceAlignment aligned = AlignSequences({Ending("xyaabcd", {0, 1000, 2000, 2130, 3000, 4000, 5000}),
                                                    Ending("Aabcd", {2000, 2130, 3000, 4000, 5000}, 300)});
  EXPECT_EQ(aligned.slots[0], (Slots{0, 1, 2, 3, 4, 5, 6}));
  EXPECT_EQ(aligned.slots[1], (Slots{2, 3, 4, 5, 6}));
}

TEST(SequenceAlignmentTest, WhatIsNotUnderWayAtTheSameTimeIsNotJoinedForItsLooseTokenAlone) {
  const SequenceAlignment aligned = AlignSequences(
      {Ending("xabcd", {0, 3000, 4000, 5000, 6000}), Ending("yXabcd", {500, 1000, 3000, 4000, 5000, 6000})});
  EXPECT_EQ(aligned.slot_count, 7u);
}

TEST(SequenceAlignmentTest, EmptyListsAreNoTrouble) {
  EXPECT_EQ(AlignSequences({}).slot_count, 0u);
  const SequenceAlignment aligned = AlignSequences({Tokens{}, Spell("ab"), Tokens{}});
  EXPECT_EQ(aligned.slot_count, 2u);
  EXPECT_TRUE(aligned.slots[0].empty());
}

TEST(SequenceAlignmentTest, RandomClipsAndGapsOfOneSequenceAreFound) {
  std::mt19937 random(7);
  size_t elements = 0;
  size_t astray = 0;
  for (int round = 0; round < 200; ++round) {
    // Distinct elements: what belongs together is known.
    const size_t length = 20 + random() % 80;
    std::vector<Tokens> lists(4);
    for (Tokens& list : lists) {
      const size_t begin = random() % 8;
      const size_t end = length - random() % 8;
      for (size_t i = begin; i < end; ++i) {
        if (random() % 20 != 0) list.push_back({i + 1, i + 1, 0});
      }
    }
    const SequenceAlignment aligned = AlignSequences(lists);
    std::vector<uint64_t> of_slot(aligned.slot_count, 0);
    std::vector<int64_t> slot_of(length + 1, -1);
    for (size_t list = 0; list < lists.size(); ++list) {
      for (size_t k = 0; k < lists[list].size(); ++k) {
        const uint64_t element = lists[list][k].exact;
        const uint32_t slot = aligned.slots[list][k];
        if (of_slot[slot] == 0) of_slot[slot] = element;
        ASSERT_EQ(of_slot[slot], element) << "different elements were joined";
        if (slot_of[element] < 0) slot_of[element] = slot;
        ++elements;
        if (slot_of[element] != slot) ++astray;
      }
    }
  }
  // Where two lists lack neighbours, their order is unknown, and a third list may find it guessed wrongly.
  EXPECT_LT(astray, elements / 100);
}

TEST(SequenceAlignmentTest, SlotsFollowTheOrderOfEveryList) {
  std::mt19937 random(11);
  for (int round = 0; round < 100; ++round) {
    std::vector<Tokens> lists(3);
    for (Tokens& list : lists) {
      std::string letters;
      for (size_t i = 0; i < 30 + random() % 30; ++i) letters.push_back(static_cast<char>('a' + random() % 3));
      list = Spell(letters);
    }
    const SequenceAlignment aligned = AlignSequences(lists);
    for (const Slots& slots : aligned.slots) {
      for (size_t k = 1; k < slots.size(); ++k) ASSERT_LT(slots[k - 1], slots[k]);
      for (const uint32_t slot : slots) ASSERT_LT(slot, aligned.slot_count);
    }
  }
}

TEST(SequenceAlignmentTest, ListsWithNothingInCommonTakeLinearTimeAndShareNothing) {
  std::vector<Tokens> lists(2);
  for (uint64_t i = 0; i < 100'000; ++i) {
    lists[0].push_back({i, i, 0});
    lists[1].push_back({i + 1'000'000, i + 1'000'000, 0});
  }
  EXPECT_EQ(AlignSequences(lists).slot_count, 200'000u);
}

}  // namespace
}  // namespace lockstep::analysis
