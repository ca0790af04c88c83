"""The nouns of the generated corpus.

One noun per line: English singular (and plural, if it is irregular; "-" if there is none),
then German gender, singular, genitive and plural. Compounds are joined by "_" in English.
A masculine genitive in -n marks the weak declension ("der Junge, des Jungen").
The more frequent nouns of a class come first.
"""

from __future__ import annotations

NOUN_TABLES = {
    "person": """
        man/men m Mann Mannes Männer
        woman/women f Frau Frau Frauen
        child/children n Kind Kindes Kinder
        teacher m Lehrer Lehrers Lehrer
        friend m Freund Freundes Freunde
        boy m Junge Jungen Jungen
        girl n Mädchen Mädchens Mädchen
        doctor m Arzt Arztes Ärzte
        neighbour m Nachbar Nachbarn Nachbarn
        student m Student Studenten Studenten
        sister f Schwester Schwester Schwestern
        brother m Bruder Bruders Brüder
        mother f Mutter Mutter Mütter
        father m Vater Vaters Väter
        daughter f Tochter Tochter Töchter
        son m Sohn Sohnes Söhne
        pupil m Schüler Schülers Schüler
        grandmother f Großmutter Großmutter Großmütter
        grandfather m Großvater Großvaters Großväter
        bus_driver m Busfahrer Busfahrers Busfahrer
        uncle m Onkel Onkels Onkel
        aunt f Tante Tante Tanten
        baker m Bäcker Bäckers Bäcker
        farmer m Bauer Bauern Bauern
        police_officer m Polizist Polizisten Polizisten
        nurse f Krankenschwester Krankenschwester Krankenschwestern
        singer m Sänger Sängers Sänger
        painter m Maler Malers Maler
        writer m Schriftsteller Schriftstellers Schriftsteller
        judge m Richter Richters Richter
        guest m Gast Gastes Gäste
        queen f Königin Königin Königinnen
        king m König Königs Könige
        tourist m Tourist Touristen Touristen
        chef m Koch Kochs Köche
        baby n Baby Babys Babys
        lawyer m Anwalt Anwalts Anwälte
        gardener m Gärtner Gärtners Gärtner
        waiter m Kellner Kellners Kellner
        taxi_driver m Taxifahrer Taxifahrers Taxifahrer
        engineer m Ingenieur Ingenieurs Ingenieure
        music_teacher m Musiklehrer Musiklehrers Musiklehrer
        soldier m Soldat Soldaten Soldaten
    """,
    "animal": """
        dog m Hund Hundes Hunde
        cat f Katze Katze Katzen
        horse n Pferd Pferdes Pferde
        bird m Vogel Vogels Vögel
        cow f Kuh Kuh Kühe
        mouse/mice f Maus Maus Mäuse
        bear m Bär Bären Bären
        goat f Ziege Ziege Ziegen
        rabbit n Kaninchen Kaninchens Kaninchen
        lion m Löwe Löwen Löwen
        fox m Fuchs Fuchses Füchse
        duck f Ente Ente Enten
        pig n Schwein Schweins Schweine
        monkey m Affe Affen Affen
        elephant m Elefant Elefanten Elefanten
        hunting_dog m Jagdhund Jagdhundes Jagdhunde
    """,
    "food": """
        apple m Apfel Apfels Äpfel
        cake m Kuchen Kuchens Kuchen
        egg n Ei Eis Eier
        soup f Suppe Suppe Suppen
        pear f Birne Birne Birnen
        apple_cake m Apfelkuchen Apfelkuchens Apfelkuchen
        tomato/tomatoes f Tomate Tomate Tomaten
        banana f Banane Banane Bananen
        potato/potatoes f Kartoffel Kartoffel Kartoffeln
        vegetable_soup f Gemüsesuppe Gemüsesuppe Gemüsesuppen
        orange f Orange Orange Orangen
        sausage f Wurst Wurst Würste
        potato_salad m Kartoffelsalat Kartoffelsalats Kartoffelsalate
        cherry f Kirsche Kirsche Kirschen
        chocolate_cake m Schokoladenkuchen Schokoladenkuchens Schokoladenkuchen
        tomato_soup f Tomatensuppe Tomatensuppe Tomatensuppen
    """,
    "staple": """
        bread/- n Brot Brotes -
        cheese/- m Käse Käses -
        meat/- n Fleisch Fleisches -
        rice/- m Reis Reises -
        ham/- m Schinken Schinkens -
        butter/- f Butter Butter -
        honey/- m Honig Honigs -
        sugar/- m Zucker Zuckers -
    """,
    "drink": """
        water/- n Wasser Wassers -
        coffee/- m Kaffee Kaffees -
        milk/- f Milch Milch -
        tea/- m Tee Tees -
        apple_juice/- m Apfelsaft Apfelsaftes -
        beer/- n Bier Bieres -
        wine/- m Wein Weines -
        orange_juice/- m Orangensaft Orangensaftes -
        lemonade/- f Limonade Limonade -
    """,
    "text": """
        book n Buch Buches Bücher
        letter m Brief Briefes Briefe
        story f Geschichte Geschichte Geschichten
        newspaper f Zeitung Zeitung Zeitungen
        love_letter m Liebesbrief Liebesbriefes Liebesbriefe
        poem n Gedicht Gedichts Gedichte
        song n Lied Liedes Lieder
        question f Frage Frage Fragen
        postcard f Postkarte Postkarte Postkarten
        report m Bericht Berichts Berichte
        word n Wort Wortes Wörter
        cookbook n Kochbuch Kochbuches Kochbücher
        love_story f Liebesgeschichte Liebesgeschichte Liebesgeschichten
    """,
    "thing": """
        picture n Bild Bildes Bilder
        key m Schlüssel Schlüssels Schlüssel
        ball m Ball Balles Bälle
        lamp f Lampe Lampe Lampen
        hat m Hut Hutes Hüte
        chair m Stuhl Stuhls Stühle
        bag f Tasche Tasche Taschen
        clock f Uhr Uhr Uhren
        gift n Geschenk Geschenks Geschenke
        box f Kiste Kiste Kisten
        cup f Tasse Tasse Tassen
        coffee_cup f Kaffeetasse Kaffeetasse Kaffeetassen
        bottle f Flasche Flasche Flaschen
        suitcase m Koffer Koffers Koffer
        knife/knives n Messer Messers Messer
        camera f Kamera Kamera Kameras
        flower f Blume Blume Blumen
        umbrella m Regenschirm Regenschirms Regenschirme
        city_map m Stadtplan Stadtplans Stadtpläne
        computer m Computer Computers Computer
        plate m Teller Tellers Teller
        spoon m Löffel Löffels Löffel
        pencil m Bleistift Bleistifts Bleistifte
        guitar f Gitarre Gitarre Gitarren
        house_key m Hausschlüssel Hausschlüssels Hausschlüssel
        wine_bottle f Weinflasche Weinflasche Weinflaschen
        bread_knife/bread_knives n Brotmesser Brotmessers Brotmesser
        wall_clock f Wanduhr Wanduhr Wanduhren
        rose f Rose Rose Rosen
        straw_hat m Strohhut Strohhutes Strohhüte
    """,
    "clothing": """
        coat m Mantel Mantels Mäntel
        shirt n Hemd Hemdes Hemden
        dress n Kleid Kleides Kleider
        jacket f Jacke Jacke Jacken
        shoe m Schuh Schuhs Schuhe
        winter_coat m Wintermantel Wintermantels Wintermäntel
        skirt m Rock Rocks Röcke
        sweater m Pullover Pullovers Pullover
        summer_dress n Sommerkleid Sommerkleides Sommerkleider
    """,
    "vehicle": """
        car n Auto Autos Autos
        bicycle n Fahrrad Fahrrades Fahrräder
        train m Zug Zuges Züge
        bus m Bus Busses Busse
        ship n Schiff Schiffes Schiffe
        boat n Boot Bootes Boote
        taxi n Taxi Taxis Taxis
        truck m Lastwagen Lastwagens Lastwagen
        school_bus m Schulbus Schulbusses Schulbusse
        sailing_boat n Segelboot Segelbootes Segelboote
    """,
    "opening": """
        door f Tür Tür Türen
        window n Fenster Fensters Fenster
        gate n Tor Tores Tore
        garden_gate n Gartentor Gartentores Gartentore
        kitchen_window n Küchenfenster Küchenfensters Küchenfenster
    """,
    "place_in": """
        house n Haus Hauses Häuser
        garden m Garten Gartens Gärten
        kitchen f Küche Küche Küchen
        city f Stadt Stadt Städte
        room n Zimmer Zimmers Zimmer
        school f Schule Schule Schulen
        park m Park Parks Parks
        forest m Wald Waldes Wälder
        village n Dorf Dorfes Dörfer
        restaurant n Restaurant Restaurants Restaurants
        museum n Museum Museums Museen
        hotel n Hotel Hotels Hotels
        living_room n Wohnzimmer Wohnzimmers Wohnzimmer
        office n Büro Büros Büros
        library f Bibliothek Bibliothek Bibliotheken
        church f Kirche Kirche Kirchen
        theatre n Theater Theaters Theater
        hospital n Krankenhaus Krankenhauses Krankenhäuser
        shop m Laden Ladens Läden
        factory f Fabrik Fabrik Fabriken
        town_hall n Rathaus Rathauses Rathäuser
        castle n Schloss Schlosses Schlösser
        bookshop f Buchhandlung Buchhandlung Buchhandlungen
        cellar m Keller Kellers Keller
        university f Universität Universität Universitäten
        bakery f Bäckerei Bäckerei Bäckereien
        valley n Tal Tales Täler
    """,
    "place_at": """
        train_station m Bahnhof Bahnhofs Bahnhöfe
        lake m See Sees Seen
        river m Fluss Flusses Flüsse
        bus_stop f Bushaltestelle Bushaltestelle Bushaltestellen
        beach m Strand Strandes Strände
        airport m Flughafen Flughafens Flughäfen
        harbour m Hafen Hafens Häfen
        coast f Küste Küste Küsten
    """,
    "place_on": """
        table m Tisch Tisches Tische
        roof n Dach Daches Dächer
        kitchen_table m Küchentisch Küchentisches Küchentische
        balcony m Balkon Balkons Balkone
        sofa n Sofa Sofas Sofas
    """,
    "place_over": """
        street f Straße Straße Straßen
        bridge f Brücke Brücke Brücken
        mountain m Berg Berges Berge
        island f Insel Insel Inseln
        meadow f Wiese Wiese Wiesen
        field n Feld Feldes Felder
        market_place m Marktplatz Marktplatzes Marktplätze
    """,
    "plant": """
        tree m Baum Baumes Bäume
        apple_tree m Apfelbaum Apfelbaumes Apfelbäume
        cherry_tree m Kirschbaum Kirschbaumes Kirschbäume
        hedge f Hecke Hecke Hecken
    """,
    "event": """
        meal n Essen Essens Essen
        lesson m Unterricht Unterrichts -
        concert n Konzert Konzerts Konzerte
        lecture m Vortrag Vortrags Vorträge
        exam f Prüfung Prüfung Prüfungen
        journey f Reise Reise Reisen
        party f Feier Feier Feiern
        birthday_party f Geburtstagsfeier Geburtstagsfeier Geburtstagsfeiern
        meeting f Sitzung Sitzung Sitzungen
        wedding f Hochzeit Hochzeit Hochzeiten
        storm m Sturm Sturms Stürme
    """,
}
