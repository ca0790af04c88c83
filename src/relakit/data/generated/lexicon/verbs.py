"""The verbs of the generated corpus.

One verb per line, in four columns: English (base, and past and participle if irregular; a
preposition or adverb that belongs to the verb is joined by "_"); German (infinitive with a bar
after a separable prefix, and third person, preterite and participle if strong; a final "sein" marks
the auxiliary of the perfect); who can be the subject (p person, a animal; ! if one can be told to
do it); the noun classes of the object, or whatever else the frame needs. The more frequent verbs of
a frame come first.

Verbs whose English past equals the base ("read", "put") are left out on purpose: the German tense
must follow from the English words.
"""

from __future__ import annotations

VERB_TABLES = {
    "accusative": """
        see saw seen | sehen sieht sah gesehen | pa | person animal thing vehicle place plant
        buy bought bought | kaufen | p! | food staple drink thing text clothing vehicle
        find found found | finden findet fand gefunden | p | thing text clothing animal
        look_for | suchen | p! | person animal thing text clothing
        eat ate eaten | essen isst aß gegessen | pa! | food staple
        call | an|rufen ruft rief gerufen | p! | person
        love | lieben | p | person animal text place
        have had had | haben hat hatte gehabt | p | animal thing vehicle clothing
        like | mögen mag/magst mochte gemocht | p | person animal text place food
        open | öffnen | p! | opening
        hear heard heard | hören | pa | person animal vehicle
        write wrote written | schreiben schreibt schrieb geschrieben | p! | text
        drink drank drunk | trinken trinkt trank getrunken | pa! | drink
        visit | besuchen | p! | person place
        meet met met | treffen trifft traf getroffen | p | person
        take took taken | nehmen nimmt nahm genommen | p! | thing text food clothing
        sell sold sold | verkaufen | p! | food thing text clothing vehicle
        invite | ein|laden lädt lud geladen | p! | person
        close | schließen schließt schloss geschlossen | p! | opening
        pick_up | ab|holen | p! | person thing text clothing
        forget forgot forgotten | vergessen vergisst vergaß vergessen | p! | person thing text
        know knew known | kennen kennt kannte gekannt | p | person text place
        carry | tragen trägt trug getragen | p! | thing animal food
        paint | malen | p! | person animal plant place
        repair | reparieren | p! | vehicle opening
        need | brauchen | p | thing text clothing vehicle staple
        lose lost lost | verlieren verliert verlor verloren | p | thing text clothing
        wash | waschen wäscht wusch gewaschen | p! | clothing vehicle animal
        take_off took_off taken_off | aus|ziehen zieht zog gezogen | p! | clothing
        cook | kochen | p! | food
        watch | beobachten | pa! | person animal vehicle
        clean | putzen | p! | opening vehicle place
        draw drew drawn | zeichnen | p! | person animal plant thing
        bake | backen backt backte gebacken | p! | food
        understand understood understood | verstehen versteht verstand verstanden | p | person text
        take_along took_along taken_along | mit|nehmen nimmt nahm genommen | p! | thing text
        order | bestellen | p! | food drink text
        look_at | an|sehen sieht sah gesehen | pa! | person animal thing place
        hold held held | halten hält/hältst hielt gehalten | p! | thing text animal
        prepare | vor|bereiten bereitet bereitete bereitet | p! | event food
        feed fed fed | füttern | p! | animal
        use | benutzen | p! | thing vehicle
        tidy_up | auf|räumen | p! | place
        greet | grüßen | p! | person
        hide hid hidden | verstecken | p! | thing text
        admire | bewundern | p | person place text
        steal stole stolen | stehlen stiehlt stahl gestohlen | pa | food thing
        photograph | fotografieren | p! | person animal plant place
        build built built | bauen | p! | place vehicle
        catch caught caught | fangen fängt fing gefangen | pa! | animal
        organise | organisieren | p! | event
    """,
    "dative": """
        help | helfen hilft half geholfen | p! | person animal
        follow | folgen sein | pa! | person animal
        thank | danken | p! | person
        answer | antworten | p! | person
        trust | vertrauen | pa | person
        listen_to | zu|hören | p! | person
        congratulate | gratulieren | p! | person
    """,
    "ditransitive": """
        give gave given | geben gibt gab gegeben | p! | thing text clothing food animal
        show showed shown | zeigen | p! | thing text clothing place
        bring brought brought | bringen bringt brachte gebracht | p! | thing text clothing food
        send sent sent | schicken | p! | thing text
        lend lent lent | leihen leiht lieh geliehen | p! | thing text vehicle
        offer | an|bieten bietet bot geboten | p! | food thing
        promise | versprechen verspricht versprach versprochen | p | thing
    """,
    "prepositional": """
        wait for | warten auf accusative | p! | person animal vehicle
        talk about | sprechen spricht sprach gesprochen über accusative | p! | person text event
        think thought thought of | denken denkt dachte gedacht an accusative | p! | person event
        play with | spielen mit dative | pa! | person animal
        laugh about | lachen über accusative | p! | person text
        dream of | träumen von dative | p! | person place event
        believe in | glauben an accusative | p | person
        ask for | bitten bittet bat gebeten um accusative | p | food staple drink
        travel travelled travelled with | reisen sein mit dative | p! | person
        fight fought fought for | kämpfen für accusative | p! | person place
    """,
    "reflexive": """
        hurry | beeilen | p! |
        rest | aus|ruhen | p! |
        sit_down sat_down sat_down | setzen | p! |
        remember | erinnern an accusative | p | person text event
        lie_down lay_down lain_down | hin|legen | p! |
    """,
    "intransitive": """
        sleep slept slept | schlafen schläft schlief geschlafen | pa! |
        work | arbeiten | p! |
        sing sang sung | singen singt sang gesungen | p! |
        laugh | lachen | p! |
        dance | tanzen | p! |
        get_up got_up got_up | auf|stehen steht stand gestanden sein | p! |
        arrive | an|kommen kommt kam gekommen sein | p |
        cry | weinen | p |
        swim swam swum | schwimmen schwimmt schwamm geschwommen sein | pa! |
        fall_asleep fell_asleep fallen_asleep | ein|schlafen schläft schlief geschlafen sein | pa |
        smile | lächeln | p! |
        wake_up woke_up woken_up | auf|wachen sein | pa |
        live | wohnen | p | place
        sit sat sat | sitzen sitzt saß gesessen | pa | place
        stay | bleiben bleibt blieb geblieben sein | pa! | place
        stand stood stood | stehen steht stand gestanden | pa | place
    """,
    "motion": """
        go went gone | gehen geht ging gegangen sein | pa! |
        come came come | kommen kommt kam gekommen sein | pa! |
        run ran run | laufen läuft lief gelaufen sein | pa! |
        drive drove driven | fahren fährt fuhr gefahren sein | p! |
        come_back came_back come_back | zurück|kommen kommt kam gekommen sein | pa! |
        fly flew flown | fliegen fliegt flog geflogen sein | p |
        run_away ran_away run_away | weg|laufen läuft lief gelaufen sein | pa |
    """,
    # Followed by a clause: "that", "whether", or an infinitive with "to".
    "that": """
        say said said | sagen | p |
        hope | hoffen | p |
        believe | glauben | p |
        know knew known | wissen weiß/weißt wusste gewusst | p |
        think thought thought | denken denkt dachte gedacht | p |
        see saw seen | sehen sieht sah gesehen | p |
        explain | erklären | p |
        dream | träumen | p |
    """,
    "whether": """
        ask | fragen | p |
        know knew known | wissen weiß/weißt wusste gewusst | p |
        forget forgot forgotten | vergessen vergisst vergaß vergessen | p |
    """,
    "infinitive": """
        try | versuchen | p |
        hope | hoffen | p |
        forget forgot forgotten | vergessen vergisst vergaß vergessen | p |
        promise | versprechen verspricht versprach versprochen | p |
        begin began begun | an|fangen fängt fing gefangen | p |
        decide | beschließen beschließt beschloss beschlossen | p |
    """,
}
